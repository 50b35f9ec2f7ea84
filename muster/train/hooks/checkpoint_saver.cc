#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/train/hooks.h"
#include "muster/train/hooks/options.h"
#include "muster/train/saver.h"

namespace muster {
namespace {

// Each of them tries several times itself.
constexpr int kLastAttempts = 5;

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
    // There is no next step.
    for (int attempt = 1; attempt < kLastAttempts && timer_->last_triggered_step() != session.global_step; ++attempt)
      RETURN_IF_ERROR(Save(session, session.global_step));
    return timer_->last_triggered_step() == session.global_step
               ? absl::OkStatus()
               : absl::UnavailableError("the last checkpoint could not be cut: the ps were restarted all the time");
  }

 private:
  absl::Status Save(const SessionContext& session, int64_t step) {
    const auto path = session.saver->Save();
    // The next step tries again.
    if (absl::IsOutOfRange(path.status())) {
      LogWarning("no checkpoint at step ", step, ": ", path.status().message());
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(path.status());
    timer_->UpdateLastTriggered(step, session.now);
    if (session.summaries == nullptr) return absl::OkStatus();
    return session.summaries->AddSessionLog(SessionStatus::kCheckpoint, step, *path);
  }

  absl::StatusOr<SecondOrStepTimer> timer_;
};

}  // namespace

std::shared_ptr<SessionHook> CheckpointSaver(const CheckpointSaverOptions& options) {
  return std::make_shared<CheckpointSaverHook>(options);
}

}  // namespace muster
