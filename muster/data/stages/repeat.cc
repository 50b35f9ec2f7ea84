#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/data/stages/stage_after.h"
#include "muster/data/stages/stages.h"

namespace muster {
namespace {

class RepeatStream final : public StreamAfter {
 public:
  RepeatStream(std::unique_ptr<StageStream> before, int64_t epochs) : StreamAfter(std::move(before)), epochs_(epochs) {}

  absl::Status Begin(int64_t epoch) override {
    first_ = epoch * epochs_;  // a Repeat after this one counts its own passes, and each of them is new epochs here
    return BeginPass(0);
  }
  absl::StatusOr<bool> Next(Example& into) override {
    while (!Ended()) {
      ASSIGN_OR_RETURN(const bool got, before().Next(into));
      any_ = any_ || got;
      if (got || !any_) return got;  // an empty pass would repeat for ever without an element
      RETURN_IF_ERROR(BeginPass(pass_ + 1));
    }
    return false;
  }
  void Tell(Place& place) const override {
    place.numbers.push_back(pass_);
    before().Tell(place);
    place.epoch = pass_;
  }
  absl::Status Seek(PlaceReader& place) override {
    ASSIGN_OR_RETURN(const int64_t pass, place.Take());
    RETURN_IF_ERROR(BeginPass(pass));
    any_ = true;  // otherwise there would be no such place
    return before().Seek(place);
  }
  absl::Status SeekEpoch(int64_t epoch) override { return BeginPass(epoch); }

 private:
  bool Ended() const { return epochs_ > 0 && pass_ >= epochs_; }
  absl::Status BeginPass(int64_t pass) {
    pass_ = pass;
    any_ = false;
    return Ended() ? absl::OkStatus() : before().Begin(first_ + pass_);
  }

  const int64_t epochs_;  // 0: for ever
  int64_t first_ = 0;
  int64_t pass_ = 0;
  bool any_ = false;  // this pass has elements
};

class RepeatStage final : public StageAfter {
 public:
  RepeatStage(StagePtr before, int64_t epochs) : StageAfter(std::move(before)), epochs_(epochs) {}

  std::string Name() const override { return epochs_ == 0 ? "repeat" : absl::StrCat("repeat(", epochs_, ")"); }
  absl::Status Check() const override {
    if (epochs_ >= 0) return CheckNotShared();
    return WrongOptionError(absl::StrCat(epochs_, " epochs; accepted: 1 or more, 0 for no end"));
  }
  std::optional<int64_t> size() const override {
    const auto once = before()->size();
    if (once == 0) return 0;
    return once && epochs_ > 0 ? std::optional<int64_t>(*once * epochs_) : std::nullopt;
  }
  bool endless() const override { return epochs_ == 0 || before()->endless(); }
  absl::StatusOr<std::unique_ptr<StageStream>> MakeStream() const override {
    ASSIGN_OR_RETURN(std::unique_ptr<StageStream> elements, before()->MakeStream());
    return std::make_unique<RepeatStream>(std::move(elements), epochs_);
  }

 private:
  const int64_t epochs_;
};

}  // namespace

StagePtr MakeRepeatStage(StagePtr before, int64_t epochs) {
  return std::make_shared<RepeatStage>(std::move(before), epochs);
}

}  // namespace muster
