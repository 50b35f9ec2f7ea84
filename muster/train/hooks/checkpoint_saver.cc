#include "muster/base/status_macros.h"
#include "muster/train/hooks.h"
#include "muster/train/hooks/options.h"
#include "muster/train/saver.h"

namespace muster {
namespace {

class CheckpointSaverHook final : public SessionHook {
 public:
  explicit CheckpointSaverHook(const CheckpointSaverOptions& options)
      : timer_(MakeTimer(options.save_steps, options.save_interval, "save_steps and save_interval")) {}

  absl::Status Begin() override { return timer_.status(); }
  absl::Status AfterCreateSession(const SessionContext& session) override {
    if (session.saver == nullptr)
      return absl::FailedPreconditionError("CheckpointSaver needs the chief's session with a checkpoint_dir");
    return Save(session, session.global_step);
  }
  absl::Status AfterRun(RunContext& context, const RunValues& values) override {
    if (!timer_->ShouldTriggerForStep(values.global_step, context.session().now)) return absl::OkStatus();
    return Save(context.session(), values.global_step);
  }
  absl::Status End(const SessionContext& session) override {
    if (timer_->last_triggered_step() == session.global_step) return absl::OkStatus();
    return Save(session, session.global_step);
  }

 private:
  absl::Status Save(const SessionContext& session, int64_t step) {
    timer_->UpdateLastTriggered(step, session.now);
    ASSIGN_OR_RETURN(const std::string path, session.saver->Save(step));
    if (session.summaries == nullptr) return absl::OkStatus();
    return session.summaries->AddSessionLog(SessionStatus::kCheckpoint, step, path);
  }

  absl::StatusOr<SecondOrStepTimer> timer_;
};

}  // namespace

std::shared_ptr<SessionHook> CheckpointSaver(const CheckpointSaverOptions& options) {
  return std::make_shared<CheckpointSaverHook>(options);
}

}  // namespace muster
