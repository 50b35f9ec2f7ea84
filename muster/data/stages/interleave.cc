#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/data/stages/stages.h"

namespace muster {
namespace {

// As in TensorFlow's InterleaveDataset: a source that has ended leaves its place in the cycle to the next one, which
// begins when the cycle comes to that place again.
class InterleaveStream final : public StageStream {
 public:
  InterleaveStream(std::vector<std::unique_ptr<StageStream>> sources, const InterleaveOptions& options)
      : options_(options), sources_(std::move(sources)), cycle_(options.cycle_length, kNone) {}

  absl::Status Begin(int64_t epoch) override {
    epoch_ = epoch;
    cycle_.assign(cycle_.size(), kNone);
    place_ = in_block_ = next_source_ = open_ = 0;
    return absl::OkStatus();
  }
  absl::StatusOr<bool> Next(Example& into) override {
    while (open_ > 0 || next_source_ < sources_.size()) {
      size_t& source = cycle_[place_];
      if (source == kNone && next_source_ < sources_.size()) {
        RETURN_IF_ERROR(sources_[next_source_]->Begin(epoch_));
        source = next_source_++;
        ++open_;
      }
      if (source != kNone) {
        ASSIGN_OR_RETURN(const bool got, sources_[source]->Next(into));
        if (got) {
          if (++in_block_ == options_.block_length) MoveOn();
          return true;
        }
        source = kNone;
        --open_;
      }
      MoveOn();
    }
    return false;
  }
  void Tell(Place& place) const override {
    const auto tell = [&place](size_t number) { place.numbers.push_back(static_cast<int64_t>(number)); };
    tell(place_);
    tell(in_block_);
    tell(next_source_);
    for (const size_t source : cycle_) {
      tell(source == kNone ? 0 : source + 1);
      if (source != kNone) sources_[source]->Tell(place);
    }
    place.epoch = 0;  // a Repeat of one source doesn't count for all
  }
  absl::Status Seek(PlaceReader& place) override {
    ASSIGN_OR_RETURN(place_, place.Take(static_cast<int64_t>(cycle_.size()) - 1));
    ASSIGN_OR_RETURN(in_block_, place.Take(static_cast<int64_t>(options_.block_length) - 1));
    const auto sources = static_cast<int64_t>(sources_.size());
    ASSIGN_OR_RETURN(next_source_, place.Take(sources));
    for (size_t& source : cycle_) {
      ASSIGN_OR_RETURN(const int64_t number, place.Take(sources));
      if (number == 0) continue;
      source = static_cast<size_t>(number) - 1;
      ++open_;
      RETURN_IF_ERROR(sources_[source]->Begin(epoch_));
      RETURN_IF_ERROR(sources_[source]->Seek(place));
    }
    return absl::OkStatus();
  }
  void Stop() override {
    for (const auto& source : sources_) source->Stop();
  }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  void MoveOn() {
    place_ = (place_ + 1) % cycle_.size();
    in_block_ = 0;
  }

  const InterleaveOptions options_;
  const std::vector<std::unique_ptr<StageStream>> sources_;
  int64_t epoch_ = 0;
  std::vector<size_t> cycle_;  // sources read in turn
  size_t place_ = 0;           // index into cycle_
  size_t in_block_ = 0;        // examples of this block already handed out
  size_t next_source_ = 0;     // the first source not yet begun
  size_t open_ = 0;            // places of the cycle that have a source
};

class InterleaveStage final : public DatasetStage {
 public:
  InterleaveStage(std::vector<StagePtr> sources, InterleaveOptions options)
      : sources_(std::move(sources)), options_(options) {}

  std::string Name() const override {
    return absl::StrCat("interleave(cycle_length=", options_.cycle_length, " block_length=", options_.block_length,
                        " of ",
                        absl::StrJoin(sources_, ", ",
                                      [](std::string* out, const StagePtr& source) {
                                        absl::StrAppend(out, source->Describe(/*elements_only=*/true));
                                      }),
                        ")");
  }
  absl::Status Check() const override {
    if (sources_.empty()) return WrongOptionError("no sources");
    if (options_.cycle_length == 0) return WrongOptionError("a cycle of 0 sources; accepted: 1 or more");
    if (options_.block_length == 0) return WrongOptionError("blocks of 0 examples; accepted: 1 or more");
    for (const StagePtr& source : sources_) {
      RETURN_IF_ERROR(source->CheckAll());
      if (source->work() != nullptr) return WrongOptionError("isn't allowed after share_by");
    }
    return absl::OkStatus();
  }
  std::optional<int64_t> size() const override {
    int64_t sum = 0;
    for (const StagePtr& source : sources_) {
      const auto size = source->size();
      if (!size) return std::nullopt;
      sum += *size;
    }
    return sum;
  }
  bool endless() const override {
    return std::any_of(sources_.begin(), sources_.end(), [](const StagePtr& source) { return source->endless(); });
  }
  absl::StatusOr<std::unique_ptr<StageStream>> MakeStream() const override {
    std::vector<std::unique_ptr<StageStream>> streams;
    for (const StagePtr& source : sources_) {
      ASSIGN_OR_RETURN(std::unique_ptr<StageStream> stream, source->MakeStream());
      streams.push_back(std::move(stream));
    }
    return std::make_unique<InterleaveStream>(std::move(streams), options_);
  }

 private:
  const std::vector<StagePtr> sources_;
  const InterleaveOptions options_;
};

}  // namespace

StagePtr MakeInterleaveStage(std::vector<StagePtr> sources, InterleaveOptions options) {
  return std::make_shared<InterleaveStage>(std::move(sources), options);
}

}  // namespace muster
