#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/train/hooks.h"
#include "muster/train/hooks/options.h"
#include "muster/train/saver.h"

namespace muster {
namespace {

// At the end there is no next step. Each of them tries several times itself.
constexpr int kLastAttempts = 5;

class CheckpointSaverHook final : public SessionHook {
 public:
  explicit CheckpointSaverHook(const CheckpointSaverOptions& options)
      : timer_(MakeTimer(options.save_steps, options.save_interval, "save_steps and save_interval")) {}

  absl::Status Begin() override { return timer_.status(); }
  absl::Status AfterCreateSession(const SessionContext& session) override {
    if (session.saver == nullptr)
      return absl::FailedPreconditionError("CheckpointSaver needs the chief's session with a checkpoint_dir");
    return SaveOrGoOn(session, session.global_step);
  }
  absl::Status AfterRun(RunContext& context, const RunValues& values) override {
    if (!timer_->ShouldTriggerForStep(values.global_step, context.session().now)) return absl::OkStatus();
    return SaveOrGoOn(context.session(), values.global_step);
  }
  absl::Status End(const SessionContext& session) override {
    if (timer_->last_triggered_step() == session.global_step) return absl::OkStatus();
    absl::Status saved;
    for (int attempt = 0; attempt < kLastAttempts; ++attempt) {
      saved = Save(session, session.global_step);
      if (!absl::IsOutOfRange(saved)) return saved;
    }
    return absl::UnavailableError(absl::StrCat("the last checkpoint could not be saved: ", saved.message()));
  }

 private:
  // What can't be saved now is tried again at the next step.
  absl::Status SaveOrGoOn(const SessionContext& session, int64_t step) {
    const absl::Status saved = Save(session, step);
    if (!absl::IsOutOfRange(saved)) return saved;
    LogWarning("no checkpoint at step ", step, ": ", saved.message());
    return absl::OkStatus();
  }
  absl::Status Save(const SessionContext& session, int64_t step) {
    ASSIGN_OR_RETURN(const std::string path, session.saver->Save());
    timer_->UpdateLastTriggered(step, session.now);
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
