#include "muster/launch/jobs/job_kill.h"

#include <csignal>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/launch/jobs/far_jobs.h"
#include "muster/launch/jobs/job_wait.h"
#include "muster/launch/registry/files/requests.h"
#include "muster/launch/registry/run_lock.h"

namespace muster {
namespace {

constexpr int kExitOfAsked = 128 + SIGTERM;
// A supervisor that has written nothing for longer doesn't live.
constexpr absl::Duration kSurelySilent = absl::Seconds(15);

}  // namespace

absl::Status JobKill::Begin(bool now) {
  began_ = means_.clock.Now();
  RunInJob& run = target_.run;
  RETURN_IF_ERROR(NoteKilled(means_.home.job(id_)));
  // Only then: a process that submits it just now reads the note after what it writes here.
  ASSIGN_OR_RETURN(const std::optional<JobOfRun> job, ReadJobFile(means_.home.job(id_)));
  run.job = job.value_or(run.job);
  // An engine that takes the job for gone may have lost the processes of its script, and the supervisor lives. Where it
  // shares no folder, only the engine leads to it. Without a supervisor, nobody would answer.
  const bool is_gone = run.news.phase == JobPhase::kEnded || run.news.phase == JobPhase::kUnknown;
  const bool may_live = run.news.phase == JobPhase::kRuns || (is_gone && !IsFar(means_.home, id_) && !IsSilent());
  return may_live && HasComeInto(means_.home, id_, run.job.id) ? Request(now) : Cancel();
}

bool JobKill::IsSilent() const {
  return means_.registry.SinceRenewal(id_).value_or(absl::InfiniteDuration()) > kSurelySilent;
}

absl::Status JobKill::KillNow() { return cancelled_ || now_ ? absl::OkStatus() : Request(/*now=*/true); }

absl::StatusOr<bool> JobKill::HasEndedNow() {
  ASSIGN_OR_RETURN(const RunRecord run, means_.registry.Run(id_));
  if (HasEnded(run.state)) return true;
  RETURN_IF_ERROR(CancelIfSubmitted());
  const absl::Duration since = means_.clock.Now() - began_;
  if (!request_.empty()) {
    const auto answered = TakeAnswer(means_.home.requests(id_), request_);
    if (answered.ok() && *answered) request_.clear();
  }
  const bool is_silent = !request_.empty() && since > kAnswerPatience;
  const bool is_late = since > kAnswerPatience + kEndPatience + (now_ ? absl::ZeroDuration() : target_.stop_grace);
  if (!cancelled_ && (is_late || (is_silent && now_))) RETURN_IF_ERROR(Cancel());
  if (is_silent && !asked_script_ && !cancelled_) RETURN_IF_ERROR(Ask("its supervisor doesn't answer"));
  return false;
}

absl::Status JobKill::CancelIfSubmitted() {
  if (!HasNoJob(target_.run.job)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::optional<JobOfRun> job, ReadJobFile(means_.home.job(id_)));
  if (!job.has_value() || HasNoJob(*job)) return absl::OkStatus();
  target_.run.job = *job;
  target_.run.text = absl::StrCat("job ", job->id);
  return Cancel();
}

absl::Status JobKill::Request(bool now) {
  now_ = now;
  began_ = means_.clock.Now();
  asked_supervisor_ = true;
  absl::StatusOr<std::string> written = WriteKillRequest(means_.home.requests(id_), now);
  if (absl::IsResourceExhausted(written.status())) {
    const std::string why(written.status().message());
    return now ? Cancel(why) : Ask(why);
  }
  ASSIGN_OR_RETURN(request_, std::move(written));
  return absl::OkStatus();
}

absl::Status JobKill::End(JobEnd how) {
  JobEngine* const engine = means_.jobs.EngineOf(target_.run.job);
  if (engine == nullptr)
    return absl::UnimplementedError(absl::StrCat("this muster has no engine '", target_.run.job.engine, "'"));
  const absl::Status ended = engine->End(target_.run.job.id, how);
  // An engine that has just said that the job waits isn't gone.
  const bool is_gone = target_.run.news.phase != JobPhase::kWaits && IsSilent();
  return absl::IsUnavailable(ended) && is_gone ? EndWithoutEngine(ended) : ended;
}

// One that lives all the same, or a job that begins later, finds that the run has ended.
absl::Status JobKill::EndWithoutEngine(const absl::Status& why) {
  ASSIGN_OR_RETURN(const RunLock lock, RunLock::Take(means_.home.lock(id_)));
  means_.say(absl::StrCat("it is killed here alone, as its job can't be ended: ", std::string(why.message())));
  return EndLostInJob(means_.home, means_.registry, id_,
                      {.state = RunState::kKilled, .reason = "it was killed", .exit_code = kExitOfAsked});
}

absl::Status JobKill::Ask(const std::string& why) {
  asked_script_ = true;
  means_.say(absl::StrCat(why, ": having ", target_.run.text, " end"));
  return End(JobEnd::kAsk);
}

absl::Status JobKill::Cancel(const std::string& why) {
  cancelled_ = true;
  if (HasNoJob(target_.run.job)) {  // a look that finds `killed` ends the run
    means_.say("it has no job, and isn't submitted again");
    return absl::OkStatus();
  }
  means_.say(absl::StrCat(why, why.empty() ? "" : ": ", "cancelling ", target_.run.text));
  return End(JobEnd::kCancel);
}

}  // namespace muster
