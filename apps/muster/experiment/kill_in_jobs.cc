#include "apps/muster/experiment/kill_in_jobs.h"

#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <list>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "apps/muster/experiment/shown_states.h"
#include "apps/muster/terminal/interrupt_fd.h"
#include "muster/base/status_macros.h"
#include "muster/launch/registry/files/requests.h"

namespace muster {
namespace {

// How long a supervisor may take to see a request, and how much longer than its tasks may take to end it may need.
constexpr absl::Duration kAnswerPatience = absl::Seconds(10);
constexpr absl::Duration kEndPatience = absl::Seconds(15);
constexpr absl::Duration kLookEvery = absl::Seconds(1);
constexpr int kPauseMs = 200;
constexpr char kKilling[] = "killing them at once\n";

// A run that is being ended, from the request to the engine's last means.
class JobKill {
 public:
  JobKill(OpenedHome& opened, const ExperimentId& id, RunInJob run, absl::Duration stop_grace)
      : opened_(opened), id_(id), run_(std::move(run)), stop_grace_(stop_grace) {}

  absl::Status Begin(const KillOptions& options) {
    began_ = RealClock().Now();
    // Its supervisor may have written it since it was looked at.
    ASSIGN_OR_RETURN(const std::optional<JobOfRun> job, ReadJobFile(opened_.home.job(id_)));
    run_.job = job.value_or(run_.job);
    run_.job.killed = true;
    RETURN_IF_ERROR(WriteJobFile(opened_.home.job(id_), run_.job));
    if (run_.news.phase != JobPhase::kRuns) return Cancel();
    if (options.show) {
      ASSIGN_OR_RETURN(const RunRecord run, opened_.registry->Run(id_));
      ASSIGN_OR_RETURN(states_, ShownStates::Begin(opened_, run));
    }
    return Request(options.now);
  }
  bool asked_tasks() const { return !request_.empty(); }
  // Asks the supervisor to kill its tasks.
  absl::Status KillNow() { return cancelled_ || now_ ? absl::OkStatus() : Request(/*now=*/true); }

  // Returns whether the run has ended. Takes the next step if it is due.
  absl::StatusOr<bool> HasEndedNow() {
    ASSIGN_OR_RETURN(const RunRecord run, opened_.registry->Run(id_));
    if (states_.has_value()) RETURN_IF_ERROR(states_->Show());
    if (HasEnded(run.state)) return true;
    const absl::Duration since = RealClock().Now() - began_;
    if (!request_.empty()) {
      const auto answered = TakeAnswer(opened_.home.requests(id_), request_);
      if (answered.ok() && *answered) request_.clear();
    }
    const bool is_silent = !request_.empty() && since > kAnswerPatience;
    const bool is_late = since > kAnswerPatience + kEndPatience + (now_ ? absl::ZeroDuration() : stop_grace_);
    if (!cancelled_ && (is_late || (is_silent && now_))) RETURN_IF_ERROR(Cancel());
    if (is_silent && !asked_ && !cancelled_) RETURN_IF_ERROR(Ask());
    return false;
  }

 private:
  absl::Status Request(bool now) {
    now_ = now;
    began_ = RealClock().Now();
    ASSIGN_OR_RETURN(request_, WriteKillRequest(opened_.home.requests(id_), now));
    return absl::OkStatus();
  }
  absl::Status End(JobEnd how) {
    JobEngine* const engine = opened_.jobs->EngineOf(run_.job);
    if (engine == nullptr)
      return absl::UnimplementedError(absl::StrCat("this muster has no engine '", run_.job.engine, "'"));
    return engine->End(run_.job.id, how);
  }
  absl::Status Ask() {
    asked_ = true;
    std::fprintf(stderr, "experiment %s: its supervisor doesn't answer: having %s end\n", ShownId(id_).c_str(),
                 run_.text.c_str());
    return End(JobEnd::kAsk);
  }
  absl::Status Cancel() {
    cancelled_ = true;
    std::fprintf(stderr, "experiment %s: cancelling %s\n", ShownId(id_).c_str(), run_.text.c_str());
    return End(JobEnd::kCancel);
  }

  OpenedHome& opened_;
  const ExperimentId id_;
  RunInJob run_;
  const absl::Duration stop_grace_;
  std::optional<ShownStates> states_;
  absl::Time began_;     // the last request
  bool now_ = false;     // which said that
  std::string request_;  // not answered yet
  bool asked_ = false;   // through the engine
  bool cancelled_ = false;
};

// Returns the runs that are meant: of a grid all that haven't ended.
absl::StatusOr<std::set<ExperimentId>> RunsMeant(const OpenedHome& opened, const std::vector<ExperimentId>& ids) {
  std::set<ExperimentId> meant;
  for (const ExperimentId& id : ids) {
    ASSIGN_OR_RETURN(const RunRecord run, opened.registry->Run(id));
    if (run.runs == 0) meant.insert(id);
    for (int i = 1; i <= run.runs; ++i)
      if (opened.jobs->Find({id.number, i}) != nullptr) meant.insert({id.number, i});
  }
  return meant;
}

}  // namespace

absl::Status KillInJobs(OpenedHome& opened, const std::vector<ExperimentId>& ids, const KillOptions& options) {
  const InterruptFd interrupt;
  ASSIGN_OR_RETURN(const std::set<ExperimentId> meant, RunsMeant(opened, ids));
  absl::Status failed;
  std::list<JobKill> kills;
  // The last first, so that none begins because one before it has ended.
  for (auto id = meant.rbegin(); id != meant.rend(); ++id) {
    const RunInJob* const run = opened.jobs->Find(*id);
    if (run == nullptr) continue;
    ASSIGN_OR_RETURN(const NewExperiment experiment, opened.registry->Specification(id->number));
    kills.emplace_back(opened, *id, *run, absl::Seconds(experiment.options.stop_grace_seconds));
    const absl::Status begun = kills.back().Begin(options);
    failed.Update(begun);
    if (!begun.ok()) kills.pop_back();
  }
  if (options.show && std::any_of(kills.begin(), kills.end(), [](const JobKill& kill) { return kill.asked_tasks(); }))
    std::fputs(options.now ? kKilling : "asked the tasks to end; Ctrl-C kills them at once\n", stderr);
  absl::Time look_at = RealClock().Now();
  pollfd stop = {options.now ? -1 : interrupt.fd(), POLLIN, 0};
  while (!kills.empty()) {
    std::erase_if(kills, [&failed](JobKill& kill) {
      const absl::StatusOr<bool> ended = kill.HasEndedNow();
      failed.Update(ended.status());
      return !ended.ok() || *ended;
    });
    if (RealClock().Now() >= look_at) {
      look_at = RealClock().Now() + kLookEvery;
      static_cast<void>(opened.jobs->Look());
    }
    if (kills.empty() || poll(&stop, 1, kPauseMs) != 1) continue;
    stop.fd = -1;
    std::fputs(kKilling, stderr);
    for (JobKill& kill : kills) failed.Update(kill.KillNow());
  }
  static_cast<void>(opened.jobs->Look());  // the end of a grid
  return failed;
}

}  // namespace muster
