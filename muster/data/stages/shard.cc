#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/data/stages/stage_after.h"
#include "muster/data/stages/stages.h"

namespace muster {
namespace {

class ShardStream final : public StreamAfter {
 public:
  ShardStream(std::unique_ptr<StageStream> before, size_t shards, size_t shard)
      : StreamAfter(std::move(before)), shards_(shards), shard_(shard) {}

  absl::Status Begin(int64_t epoch) override {
    seen_ = 0;
    return before().Begin(epoch);
  }
  absl::StatusOr<bool> Next(Example& into) override {
    for (;;) {
      ASSIGN_OR_RETURN(const bool got, before().Next(seen_example_));
      if (!got) return false;
      if (static_cast<size_t>(seen_++) % shards_ != shard_) continue;
      std::swap(into, seen_example_);
      return true;
    }
  }
  void Tell(Place& place) const override {
    place.numbers.push_back(seen_);
    before().Tell(place);
  }
  absl::Status Seek(PlaceReader& place) override {
    ASSIGN_OR_RETURN(seen_, place.Take());
    return before().Seek(place);
  }

 private:
  const size_t shards_;
  const size_t shard_;
  int64_t seen_ = 0;  // examples of all shards
  Example seen_example_;
};

class ShardStage final : public IndexedStageAfter {
 public:
  ShardStage(StagePtr before, size_t shards, size_t shard)
      : IndexedStageAfter(std::move(before)), shards_(shards), shard_(shard) {}

  std::string Name() const override { return absl::StrCat("shard(", shard_, "/", shards_, ")"); }
  absl::Status Check() const override {
    if (shard_ >= shards_) {
      return WrongOptionError(
          absl::StrCat("shard ", shard_, " of ", shards_, "; accepted: 0 up to the number of shards less one"));
    }
    if (const auto all = before()->size(); all && *all > 0 && static_cast<size_t>(*all) <= shard_) {
      return WrongOptionError(absl::StrCat("shard ", shard_, " of ", shards_, " has no rows: there are ", *all));
    }
    return CheckNotShared();
  }
  std::optional<int64_t> size() const override {
    const auto all = before()->size();
    if (!all) return all;
    const auto shards = static_cast<int64_t>(shards_);
    return (*all - static_cast<int64_t>(shard_) + shards - 1) / shards;
  }
  void FillOrder(int64_t epoch, size_t rows, std::vector<size_t>& order) const override {
    before()->FillOrder(epoch, rows, order);
    size_t kept = 0;
    for (size_t i = shard_; i < order.size(); i += shards_) order[kept++] = order[i];
    order.resize(kept);
  }

 protected:
  std::unique_ptr<StageStream> MakeStreamOver(std::unique_ptr<StageStream> elements) const override {
    return std::make_unique<ShardStream>(std::move(elements), shards_, shard_);
  }

 private:
  const size_t shards_;
  const size_t shard_;
};

class ShareByStage final : public StageAfter {
 public:
  ShareByStage(StagePtr before, std::shared_ptr<WorkSource> work)
      : StageAfter(std::move(before)), work_(std::move(work)) {}

  std::string Name() const override { return "share_by"; }
  absl::Status Check() const override {
    if (work_ == nullptr) return WrongOptionError("no work source");
    if (before()->work() != nullptr) return WrongOptionError("the work is shared already");
    if (before()->indexed()) return absl::OkStatus();
    return WrongOptionError(
        "needs rows that can be read by number (memory, IDX files, image folders, and map, shuffle, take, skip, cache "
        "over them), as a unit of work is a range of them");
  }
  std::optional<int64_t> size() const override { return std::nullopt; }
  bool indexed() const override { return before()->indexed(); }
  absl::StatusOr<std::shared_ptr<const RowReader>> OpenReader() const override { return before()->OpenReader(); }
  void FillOrder(int64_t epoch, size_t rows, std::vector<size_t>& order) const override {
    before()->FillOrder(epoch, rows, order);
  }
  WorkSource* work() const override { return work_.get(); }

 private:
  const std::shared_ptr<WorkSource> work_;
};

}  // namespace

StagePtr MakeShardStage(StagePtr before, size_t shards, size_t shard) {
  return std::make_shared<ShardStage>(std::move(before), shards, shard);
}

StagePtr MakeShareByStage(StagePtr before, std::shared_ptr<WorkSource> work) {
  return std::make_shared<ShareByStage>(std::move(before), std::move(work));
}

}  // namespace muster
