#include "muster/train/hooks/step_counter.h"

#include "absl/strings/str_format.h"
#include "muster/algo/algorithms/algorithm.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/train/hooks/timer_options.h"

namespace muster {
namespace {

// TensorFlow warns once the global step hasn't moved for this many of its own checks; here, once this many updates are
// missing.
constexpr int64_t kStandingStillBeforeWarning = 20;
// The warning is repeated after this many more.
constexpr int64_t kRunsBetweenWarnings = 1000;

class StepCounterHook final : public SessionHook {
 public:
  explicit StepCounterHook(const StepCounterOptions& options)
      : timer_(MakeTimerOr("StepCounter", 100, options.every_n_steps, options.every, "every_n_steps and every")) {}

  absl::Status Begin() override { return timer_.status(); }
  absl::Status AfterRun(RunContext& context, const RunValues& values) override {
    const Algorithm* algorithm = context.session().algorithm;
    NoteMovement(values.global_step, algorithm != nullptr ? algorithm->window() : 1);
    const absl::Time now = context.session().now;
    if (!timer_->ShouldTriggerForStep(values.global_step, now)) return absl::OkStatus();
    const auto elapsed = timer_->UpdateLastTriggered(values.global_step, now);
    if (!elapsed || elapsed->time <= absl::ZeroDuration()) return absl::OkStatus();
    const double rate = static_cast<double>(elapsed->steps) / absl::ToDoubleSeconds(elapsed->time);
    LogInfo("global_step/sec: ", absl::StrFormat("%g", rate));
    if (context.session().summaries == nullptr) return absl::OkStatus();
    return context.session().summaries->AddScalar("global_step/sec", static_cast<float>(rate), values.global_step);
  }

 private:
  void NoteMovement(int64_t step, int64_t window) {
    still_ = step == last_step_ ? still_ + 1 : 0;
    last_step_ = step;
    const int64_t since = still_ - kStandingStillBeforeWarning * window;
    if (since < 0 || since % (kRunsBetweenWarnings * window) != 0) return;
    LogWarning("the global step has not moved for ", still_, " runs (it stands at ", step,
               "); with LocalVariables, the run makes no push");
  }

  absl::StatusOr<SecondOrStepTimer> timer_;
  int64_t last_step_ = -1;
  int64_t still_ = 0;
};

}  // namespace

std::shared_ptr<SessionHook> StepCounter(const StepCounterOptions& options) {
  return std::make_shared<StepCounterHook>(options);
}

}  // namespace muster
