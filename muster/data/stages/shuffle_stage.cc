#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/data/shuffle.h"
#include "muster/data/stages/stage_after.h"
#include "muster/data/stages/stages.h"

namespace muster {
namespace {

// Draws the next example at random from a buffer and puts the next one of the source in its place (TensorFlow's
// ShuffleDataset). Positions don't contain the buffer: a restored stream draws again from the beginning.
class BufferedShuffleStream final : public StreamAfter {
 public:
  BufferedShuffleStream(std::unique_ptr<StageStream> before, const ShuffleOptions& options)
      : StreamAfter(std::move(before)), options_(options) {}

  absl::Status Begin(int64_t epoch) override {
    random_ = ShuffleGenerator(options_.seed, options_.reshuffle_each_iteration ? static_cast<uint64_t>(epoch) : 0);
    held_ = 0;
    ended_ = false;
    handed_out_ = first_epoch_ = 0;
    return before().Begin(epoch);
  }
  absl::StatusOr<bool> Next(Example& into) override {
    while (!ended_ && held_ < Capacity()) RETURN_IF_ERROR(TakeIn());
    if (held_ == 0) return false;
    std::swap(buffer_[random_.Below(held_)], buffer_[held_ - 1]);
    std::swap(into, buffer_[--held_]);
    ++handed_out_;
    return true;
  }
  void Tell(Place& place) const override {
    Place inner;
    before().Tell(inner);
    place.epoch = inner.epoch;
    place.numbers.insert(place.numbers.end(), {first_epoch_, handed_out_});
  }
  absl::Status Seek(PlaceReader& place) override {
    ASSIGN_OR_RETURN(const int64_t first_epoch, place.Take());
    ASSIGN_OR_RETURN(const int64_t wanted, place.Take());
    if (first_epoch > 0) RETURN_IF_ERROR(SeekEpoch(first_epoch));
    Example passed;
    while (handed_out_ < wanted) {
      ASSIGN_OR_RETURN(const bool got, Next(passed));
      if (!got) {
        return absl::OutOfRangeError(
            absl::StrCat(wanted, " examples had been handed out, but now there are only ", handed_out_));
      }
    }
    return absl::OkStatus();
  }
  absl::Status SeekEpoch(int64_t epoch) override {
    first_epoch_ = epoch;
    return before().SeekEpoch(epoch);
  }

 private:
  size_t Capacity() const {
    return options_.buffer_size > 0 ? options_.buffer_size : std::numeric_limits<size_t>::max();
  }
  // Puts one more example into the buffer, if there is one.
  absl::Status TakeIn() {
    if (held_ == buffer_.size()) buffer_.emplace_back();
    ASSIGN_OR_RETURN(const bool got, before().Next(buffer_[held_]));
    ended_ = !got;
    if (got) ++held_;
    return absl::OkStatus();
  }

  const ShuffleOptions options_;
  SplitMix64 random_{0};
  std::vector<Example> buffer_;  // only the first held_ count; the others are kept for their memory
  size_t held_ = 0;
  bool ended_ = false;
  int64_t handed_out_ = 0;
  int64_t first_epoch_ = 0;  // the epoch of an earlier Repeat from which handed_out_ counts
};

class ShuffleStage final : public IndexedStageAfter {
 public:
  ShuffleStage(StagePtr before, const ShuffleOptions& options)
      : IndexedStageAfter(std::move(before)), options_(options) {}

  std::string Name() const override {
    std::string name = absl::StrCat("shuffle(seed=", options_.seed);
    if (!indexed() && options_.buffer_size > 0) absl::StrAppend(&name, " buffer_size=", options_.buffer_size);
    return absl::StrCat(name, options_.reshuffle_each_iteration ? ")" : " once)");
  }
  absl::Status Check() const override {
    if (options_.buffer_size == 0 && before()->endless())
      return WrongOptionError("all examples of an endless input; accepted: a buffer_size, or shuffle before repeat");
    return CheckNotShared();
  }
  void FillOrder(int64_t epoch, size_t rows, std::vector<size_t>& order) const override {
    before()->FillOrder(epoch, rows, order);
    ShuffleInPlace(order, options_.seed, options_.reshuffle_each_iteration ? static_cast<uint64_t>(epoch) : 0);
  }

 protected:
  std::unique_ptr<StageStream> MakeStreamOver(std::unique_ptr<StageStream> elements) const override {
    return std::make_unique<BufferedShuffleStream>(std::move(elements), options_);
  }

 private:
  const ShuffleOptions options_;
};

}  // namespace

StagePtr MakeShuffleStage(StagePtr before, ShuffleOptions options) {
  return std::make_shared<ShuffleStage>(std::move(before), options);
}

}  // namespace muster
