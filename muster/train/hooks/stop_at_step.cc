#include "muster/train/hooks/stop_at_step.h"

#include "muster/base/log.h"
#include "muster/base/wrong_configuration.h"

namespace muster {
namespace {

class StopAtStepHook final : public SessionHook {
 public:
  explicit StopAtStepHook(const StopAtStepOptions& options) : options_(options), last_step_(options.last_step) {}

  absl::Status Begin() override {
    if (options_.num_steps.has_value() == options_.last_step.has_value())
      return WrongOptionError("StopAtStep: exactly one of num_steps and last_step must be given");
    return absl::OkStatus();
  }
  absl::Status AfterCreateSession(const SessionContext& session) override {
    if (!last_step_) last_step_ = session.global_step + *options_.num_steps;
    if (session.global_step >= *last_step_) {
      LogInfo("already at step ", session.global_step, " of ", *last_step_, ": there is nothing to train");
      session.request_stop();
    }
    return absl::OkStatus();
  }
  absl::Status BeforeRun(RunContext& context) override {
    Check(context, context.session().global_step);
    return absl::OkStatus();
  }
  absl::Status AfterRun(RunContext& context, const RunValues& values) override {
    Check(context, values.global_step);
    return absl::OkStatus();
  }
  // A worker that only looks on ends with the training, too.
  absl::Status AfterFetch(RunContext& context) override {
    Check(context, context.session().global_step);
    return absl::OkStatus();
  }

 private:
  void Check(RunContext& context, int64_t step) const {
    if (step >= *last_step_) context.RequestStop();
  }

  const StopAtStepOptions options_;
  std::optional<int64_t> last_step_;
};

}  // namespace

std::shared_ptr<SessionHook> StopAtStep(const StopAtStepOptions& options) {
  return std::make_shared<StopAtStepHook>(options);
}

}  // namespace muster
