#include "muster/train/hooks/checkpoint_saver.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/retry_pause.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/store/client/store_client.h"
#include "muster/train/hooks/timer_options.h"
#include "muster/train/saving/saver.h"
#include "muster/transport/event_loop.h"

namespace muster {
namespace {

constexpr absl::Duration kFirstPause = absl::Seconds(5);
constexpr absl::Duration kLongestPause = absl::Minutes(1);
constexpr absl::Duration kFirstPauseAtTheEnd = absl::Seconds(1);
constexpr absl::Duration kBetweenLooks = absl::Seconds(5);  // for the last checkpoint, which may have been deleted

// The error of a last save that failed for all of `patience`.
absl::Status LostSteps(const SessionContext& session, absl::Duration patience, const absl::Status& why) {
  const std::string& newest = session.saver->last_checkpoint();
  const int64_t step = newest.empty() ? 0 : StepOfCheckpoint(newest.substr(newest.rfind('/') + 1)).value_or(0);
  // An interrupted save is the cluster's trouble, and its exit code says that a retry is worth it.
  const auto code = absl::IsOutOfRange(why) ? absl::StatusCode::kUnavailable : why.code();
  return absl::Status(code,
                      absl::StrCat("the last checkpoint could not be saved in ", absl::FormatDuration(patience), ": ",
                                   why.message(), "; the ", session.global_step - step, " steps since ",
                                   newest.empty() ? "the beginning are lost, as there is no checkpoint"
                                                  : absl::StrCat(newest,
                                                                 " are lost; training that is started again goes on "
                                                                 "from there")));
}

class CheckpointSaverHook final : public SessionHook {
 public:
  explicit CheckpointSaverHook(const CheckpointSaverOptions& options)
      : timer_(MakeTimer("CheckpointSaver", options.save_steps, options.save_interval, "save_steps and save_interval")),
        listeners_(options.listeners),
        last_save_patience_(options.last_save_patience),
        pause_(kFirstPause, std::min(kLongestPause, options.save_interval.value_or(kLongestPause))) {}

  absl::Status Begin() override {
    RETURN_IF_ERROR(timer_.status());
    if (last_save_patience_ < absl::ZeroDuration())
      return WrongOptionError(absl::StrCat("CheckpointSaver: last_save_patience is ",
                                           absl::FormatDuration(last_save_patience_), "; accepted: 0 or more"));
    for (const auto& listener : listeners_) RETURN_IF_ERROR(listener->Begin());
    return absl::OkStatus();
  }
  absl::Status AfterCreateSession(const SessionContext& session) override {
    if (session.saver == nullptr)
      return absl::FailedPreconditionError("CheckpointSaver needs the chief's session with a checkpoint_dir");
    return SaveOrContinue(session, session.global_step).status();
  }
  absl::Status AfterRun(RunContext& context, const RunValues& values) override {
    if (!IsDue(context.session(), values.global_step)) return absl::OkStatus();
    ASSIGN_OR_RETURN(const AfterSaving after, SaveOrContinue(context.session(), values.global_step));
    if (after == AfterSaving::kStop) context.RequestStop();
    return absl::OkStatus();
  }
  absl::Status End(const SessionContext& session) override {
    absl::Status ended;
    if (timer_->last_triggered_step() != session.global_step || !session.saver->LastIsThere())
      ended = SaveLast(session);
    for (const auto& listener : listeners_) ended.Update(listener->End(session, session.global_step));
    return ended;
  }

 private:
  struct Saved {
    AfterSaving after = AfterSaving::kContinue;
    absl::Status why_not;  // the saver's error, if training goes on; a listener's OutOfRange is the end of the input
  };

  bool IsDue(const SessionContext& session, int64_t step) {
    if (retry_at_) return session.loop->Now() >= *retry_at_;
    if (timer_->ShouldTriggerForStep(step, session.now)) return true;
    if (session.now < look_at_) return false;
    look_at_ = session.now + kBetweenLooks;
    if (session.saver->LastIsThere()) return false;
    LogWarning(session.saver->last_checkpoint(), " was deleted: saving another checkpoint now");
    return true;
  }

  // Tries until the patience is over: the steps since the newest checkpoint would be lost.
  absl::Status SaveLast(const SessionContext& session) {
    const absl::Time deadline = session.loop->Now() + last_save_patience_;
    RetryPause pause(kFirstPauseAtTheEnd, absl::InfiniteDuration());
    for (;;) {
      ASSIGN_OR_RETURN(const Saved done, Save(session, session.global_step));
      if (done.why_not.ok()) return absl::OkStatus();
      const absl::Duration left = deadline - session.loop->Now();
      if (left <= absl::ZeroDuration()) return LostSteps(session, last_save_patience_, done.why_not);
      const absl::Duration wait = std::min(pause.Next(), left);
      LogWarning("the last checkpoint could not be saved: ", done.why_not.message(), "; the next attempt is in ",
                 absl::FormatDuration(absl::Ceil(wait, absl::Seconds(1))), ", the last one in ",
                 absl::FormatDuration(absl::Ceil(left, absl::Seconds(1))));
      session.loop->RunUntil([] { return false; }, session.loop->Now() + wait);
    }
  }

  absl::StatusOr<AfterSaving> SaveOrContinue(const SessionContext& session, int64_t step) {
    ASSIGN_OR_RETURN(const Saved saved, Save(session, step));
    if (saved.why_not.ok()) return saved.after;
    const std::string what = absl::StrCat("no checkpoint at step ", step, ": ", saved.why_not.message());
    if (absl::IsOutOfRange(saved.why_not)) {  // something came in between, which is over now
      LogWarning(what, "; tries again at the next step");
      return saved.after;
    }
    const absl::Duration pause = pause_.Next();
    retry_at_ = session.loop->Now() + pause;
    const std::string& newest = session.saver->last_checkpoint();
    LogWarning(what, "; training goes on, the next attempt is in ", absl::FormatDuration(pause), "; the newest is ",
               newest.empty() ? "none" : newest);
    return saved.after;
  }
  absl::StatusOr<Saved> Save(const SessionContext& session, int64_t step) {
    const WorkerProgress::Busy busy(session.client->progress(), "saving a checkpoint");
    for (const auto& listener : listeners_) RETURN_IF_ERROR(listener->BeforeSave(session, step));
    const absl::StatusOr<std::string> path = session.saver->Save();
    if (session.saver->IsWorthARetry(path.status())) return Saved{.why_not = path.status()};
    RETURN_IF_ERROR(path.status());
    retry_at_.reset();
    pause_.Reset();
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
  const absl::Duration last_save_patience_;
  RetryPause pause_;
  std::optional<absl::Time> retry_at_;  // after a failure
  absl::Time look_at_ = absl::InfinitePast();
};

}  // namespace

std::shared_ptr<SessionHook> CheckpointSaver(const CheckpointSaverOptions& options) {
  return std::make_shared<CheckpointSaverHook>(options);
}

}  // namespace muster
