#include "muster/train/hooks/checkpoint_saver.h"

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/train/hooks/timer_options.h"
#include "muster/train/saving/saver.h"

namespace muster {
namespace {

// How often the last save is attempted: at the end there is no next step. Each attempt itself retries several times.
constexpr int kLastAttempts = 5;

class CheckpointSaverHook final : public SessionHook {
 public:
  explicit CheckpointSaverHook(const CheckpointSaverOptions& options)
      : timer_(MakeTimer("CheckpointSaver", options.save_steps, options.save_interval, "save_steps and save_interval")),
        listeners_(options.listeners) {}

  absl::Status Begin() override {
    RETURN_IF_ERROR(timer_.status());
    for (const auto& listener : listeners_) RETURN_IF_ERROR(listener->Begin());
    return absl::OkStatus();
  }
  absl::Status AfterCreateSession(const SessionContext& session) override {
    if (session.saver == nullptr)
      return absl::FailedPreconditionError("CheckpointSaver needs the chief's session with a checkpoint_dir");
    return SaveOrContinue(session, session.global_step).status();
  }
  absl::Status AfterRun(RunContext& context, const RunValues& values) override {
    if (!timer_->ShouldTriggerForStep(values.global_step, context.session().now)) return absl::OkStatus();
    ASSIGN_OR_RETURN(const AfterSaving after, SaveOrContinue(context.session(), values.global_step));
    if (after == AfterSaving::kStop) context.RequestStop();
    return absl::OkStatus();
  }
  absl::Status End(const SessionContext& session) override {
    absl::Status ended;
    if (timer_->last_triggered_step() != session.global_step) ended = SaveLast(session);
    for (const auto& listener : listeners_) ended.Update(listener->End(session, session.global_step));
    return ended;
  }

 private:
  struct Saved {
    AfterSaving after = AfterSaving::kContinue;
    absl::Status why_not;  // the saver's OutOfRange; a listener's OutOfRange is the end of the input
  };

  absl::Status SaveLast(const SessionContext& session) {
    absl::Status saved;
    for (int attempt = 0; attempt < kLastAttempts; ++attempt) {
      ASSIGN_OR_RETURN(const Saved done, Save(session, session.global_step));
      if (done.why_not.ok()) return absl::OkStatus();
      saved = done.why_not;
    }
    return absl::UnavailableError(absl::StrCat("the last checkpoint could not be saved: ", saved.message()));
  }
  // A save that fails now is retried at the next step.
  absl::StatusOr<AfterSaving> SaveOrContinue(const SessionContext& session, int64_t step) {
    ASSIGN_OR_RETURN(const Saved saved, Save(session, step));
    if (!saved.why_not.ok()) LogWarning("no checkpoint at step ", step, ": ", saved.why_not.message());
    return saved.after;
  }
  absl::StatusOr<Saved> Save(const SessionContext& session, int64_t step) {
    const WorkerProgress::Busy busy(session.client->progress(), "saving a checkpoint");
    for (const auto& listener : listeners_) RETURN_IF_ERROR(listener->BeforeSave(session, step));
    const absl::StatusOr<std::string> path = session.saver->Save();
    if (absl::IsOutOfRange(path.status())) return Saved{.why_not = path.status()};
    RETURN_IF_ERROR(path.status());
    timer_->UpdateLastTriggered(step, session.now);
    if (session.summaries != nullptr)
      RETURN_IF_ERROR(session.summaries->AddSessionLog(SessionStatus::kCheckpoint, step, *path));
    AfterSaving after = AfterSaving::kContinue;
    for (const auto& listener : listeners_) {
      ASSIGN_OR_RETURN(const AfterSaving wish, listener->AfterSave(session, step));
      if (wish != AfterSaving::kStop) continue;
      LogInfo("A CheckpointSaverListener requested that training be stopped.");
      after = AfterSaving::kStop;
    }
    return Saved{.after = after};
  }

  absl::StatusOr<SecondOrStepTimer> timer_;
  const std::vector<std::shared_ptr<CheckpointSaverListener>> listeners_;
};

}  // namespace

std::shared_ptr<SessionHook> CheckpointSaver(const CheckpointSaverOptions& options) {
  return std::make_shared<CheckpointSaverHook>(options);
}

}  // namespace muster
