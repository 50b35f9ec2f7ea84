#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/data/stages/stage_after.h"
#include "muster/data/stages/stages.h"

namespace muster {
namespace {

class TakeStream final : public StreamAfter {
 public:
  TakeStream(std::unique_ptr<StageStream> before, int64_t count) : StreamAfter(std::move(before)), count_(count) {}

  absl::Status Begin(int64_t epoch) override {
    taken_ = 0;
    return before().Begin(epoch);
  }
  absl::StatusOr<bool> Next(Example& into) override {
    if (taken_ >= count_) return false;
    ASSIGN_OR_RETURN(const bool got, before().Next(into));
    if (got) ++taken_;
    return got;
  }
  void Tell(Place& place) const override {
    place.numbers.push_back(taken_);
    before().Tell(place);
  }
  absl::Status Seek(PlaceReader& place) override {
    ASSIGN_OR_RETURN(taken_, place.Take(count_));
    return before().Seek(place);
  }

 private:
  const int64_t count_;
  int64_t taken_ = 0;
};

class SkipStream final : public StreamAfter {
 public:
  SkipStream(std::unique_ptr<StageStream> before, int64_t count) : StreamAfter(std::move(before)), count_(count) {}

  absl::Status Begin(int64_t epoch) override {
    skipped_ = 0;
    return before().Begin(epoch);
  }
  absl::StatusOr<bool> Next(Example& into) override {
    for (; skipped_ < count_; ++skipped_) {
      ASSIGN_OR_RETURN(const bool got, before().Next(passed_));
      if (!got) return false;
    }
    return before().Next(into);
  }
  void Tell(Place& place) const override {
    place.numbers.push_back(skipped_);
    before().Tell(place);
  }
  absl::Status Seek(PlaceReader& place) override {
    ASSIGN_OR_RETURN(skipped_, place.Take(count_));
    return before().Seek(place);
  }
  // With a Repeat before it, the beginning of the first epoch is what is skipped.
  absl::Status SeekEpoch(int64_t epoch) override {
    if (epoch > 0) skipped_ = count_;
    return before().SeekEpoch(epoch);
  }

 private:
  const int64_t count_;
  int64_t skipped_ = 0;
  Example passed_;
};

absl::Status CheckCount(int64_t count) {
  return count >= 0 ? absl::OkStatus() : WrongOptionError(absl::StrCat(count, " elements; accepted: 0 or more"));
}

class TakeStage final : public IndexedStageAfter {
 public:
  TakeStage(StagePtr before, int64_t count) : IndexedStageAfter(std::move(before)), count_(count) {}

  std::string Name() const override { return absl::StrCat("take(", count_, ")"); }
  absl::Status Check() const override {
    RETURN_IF_ERROR(CheckCount(count_));
    return CheckNotShared();
  }
  std::optional<int64_t> size() const override {
    const auto all = before()->size();
    return all ? std::optional<int64_t>(std::min(*all, count_)) : std::nullopt;
  }
  bool endless() const override { return false; }
  void FillOrder(int64_t epoch, size_t rows, std::vector<size_t>& order) const override {
    before()->FillOrder(epoch, rows, order);
    order.resize(std::min(order.size(), static_cast<size_t>(count_)));
  }

 protected:
  std::unique_ptr<StageStream> MakeStreamOver(std::unique_ptr<StageStream> elements) const override {
    return std::make_unique<TakeStream>(std::move(elements), count_);
  }

 private:
  const int64_t count_;
};

class SkipStage final : public IndexedStageAfter {
 public:
  SkipStage(StagePtr before, int64_t count) : IndexedStageAfter(std::move(before)), count_(count) {}

  std::string Name() const override { return absl::StrCat("skip(", count_, ")"); }
  absl::Status Check() const override {
    RETURN_IF_ERROR(CheckCount(count_));
    return CheckNotShared();
  }
  std::optional<int64_t> size() const override {
    const auto all = before()->size();
    return all ? std::optional<int64_t>(std::max<int64_t>(*all - count_, 0)) : std::nullopt;
  }
  void FillOrder(int64_t epoch, size_t rows, std::vector<size_t>& order) const override {
    before()->FillOrder(epoch, rows, order);
    order.erase(order.begin(), order.begin() + std::min(static_cast<int64_t>(order.size()), count_));
  }

 protected:
  std::unique_ptr<StageStream> MakeStreamOver(std::unique_ptr<StageStream> elements) const override {
    return std::make_unique<SkipStream>(std::move(elements), count_);
  }

 private:
  const int64_t count_;
};

}  // namespace

StagePtr MakeTakeStage(StagePtr before, int64_t count) { return std::make_shared<TakeStage>(std::move(before), count); }

StagePtr MakeSkipStage(StagePtr before, int64_t count) { return std::make_shared<SkipStage>(std::move(before), count); }

}  // namespace muster
