#include "muster/launch/supervisor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster {
namespace {

std::string Names(const std::set<TaskId>& tasks) {
  return absl::StrJoin(tasks, ", ", [](std::string* out, const TaskId& task) { out->append(task.ToString()); });
}

bool IsServer(const TaskId& task) { return task.job == kPsJob; }

// The exit code that says "worth trying again" (docs/architecture.md), and those of shells whose child was ended or
// killed. Not 130, of who was asked to stop, and has told the others that it did.
bool Retryable(const ExitStatus& status) {
  return status.signal != 0 || status.code == 137 || status.code == 138 || status.code == 143;
}

constexpr absl::Duration kLongestPause = absl::Seconds(10);

}  // namespace

Supervisor::Supervisor(const std::vector<TaskId>& running, const SupervisorOptions& options, Backend& backend,
                       const Clock& clock, Report report)
    : options_(options),
      backend_(backend),
      clock_(clock),
      report_(std::move(report)),
      running_(running.begin(), running.end()) {
  for (const TaskId& task : running) lives_[task].began = clock.Now();
}

void Supervisor::OnExit(const TaskId& task, const ExitStatus& status) {
  if (running_.erase(task) == 0) return;
  const bool by_itself = phase_ == Phase::kTraining || phase_ == Phase::kChiefEnded;
  if (by_itself && Heal(task, status)) return;
  if (by_itself && !status.ok() && !first_failure_.has_value()) first_failure_ = Failure{task, status};
  if (by_itself && !status.ok() && IsServer(task)) server_lost_ = true;
  if (task == options_.chief) {
    OnChiefExit(status);
  } else if (by_itself && !status.ok() && !running_.empty()) {
    ReportFailure(task, status);
  }
  if (phase_ == Phase::kChiefEnded) EndServersOfTheLost();
  if (phase_ == Phase::kEnding) AskServersToEnd();
  if (running_.empty()) deadline_ = absl::InfiniteFuture();
}

bool Supervisor::Heal(const TaskId& task, const ExitStatus& status) {
  Life& life = lives_[task];
  if (!Retryable(status) || life.restarts >= options_.max_restarts || server_lost_) return false;
  ++life.restarts;
  life.short_lives = clock_.Now() - life.began < options_.steady_life ? life.short_lives + 1 : 1;
  const absl::Duration pause =
      life.short_lives == 1
          ? absl::ZeroDuration()
          : std::min(kLongestPause, options_.restart_pause * (1 << std::min(life.short_lives - 2, 10)));
  report_(absl::StrCat(task.ToString(), " ", status.ToString(), ": starting it again",
                       pause > absl::ZeroDuration() ? absl::StrCat(" in ", absl::FormatDuration(pause)) : "",
                       " (restart ", life.restarts, " of ", options_.max_restarts, ")"));
  restarts_due_[task] = clock_.Now() + pause;
  if (pause == absl::ZeroDuration()) Restart(task);
  return true;
}

std::string Supervisor::HowItEnded(const TaskId& task, const ExitStatus& status) const {
  const int restarts = lives_.at(task).restarts;
  return absl::StrCat(
      task.ToString(), " ", status.ToString(),
      restarts > 0 ? absl::StrCat(" after ", restarts, " of ", options_.max_restarts, " restarts") : "");
}

void Supervisor::Restart(const TaskId& task) {
  restarts_due_.erase(task);
  lives_[task].began = clock_.Now();
  running_.insert(task);
  const absl::Status launched = options_.relaunch(task);
  if (launched.ok()) return;
  report_(absl::StrCat(task.ToString(), " could not be started again: ", launched.message()));
  OnExit(task, {.code = 1});
}

absl::Time Supervisor::deadline() const {
  absl::Time next = deadline_;
  for (const auto& [task, due] : restarts_due_) next = std::min(next, due);
  return next;
}

void Supervisor::OnChiefExit(const ExitStatus& status) {
  exit_code_ = status.ShellCode();
  if (phase_ != Phase::kTraining || running_.empty()) return;
  if (status.ok()) {
    phase_ = Phase::kChiefEnded;
    deadline_ = clock_.Now() + options_.stop_grace;
    return;
  }
  report_(absl::StrCat(HowItEnded(options_.chief, status), ": ending the others (", Names(running_), ")"));
  BeginEnding(options_.stop_grace);
}

void Supervisor::ReportFailure(const TaskId& task, const ExitStatus& status) {
  const bool fatal = phase_ == Phase::kTraining && IsServer(task);
  report_(absl::StrCat(
      HowItEnded(task, status),
      fatal ? ": training can't go on without it, the others will find out (Ctrl-C ends them)" : "; the others go on"));
}

void Supervisor::OnInterrupt() {
  ++interrupts_;
  restarts_due_.clear();
  if (running_.empty()) return;
  if (interrupts_ > 1) {
    report_(absl::StrCat("interrupted again: killing ", Names(running_)));
    KillAll();
    return;
  }
  report_(absl::StrCat("interrupted: ending ", Names(running_), " within ", absl::FormatDuration(options_.stop_grace),
                       " (interrupt again to kill them at once)"));
  if (phase_ == Phase::kTraining || phase_ == Phase::kChiefEnded) BeginEnding(options_.stop_grace);
}

void Supervisor::OnTime() {
  const std::map<TaskId, absl::Time> due = restarts_due_;
  for (const auto& [task, when] : due)
    if (when <= clock_.Now()) Restart(task);
  if (running_.empty() || clock_.Now() < deadline_) return;
  if (phase_ == Phase::kChiefEnded) {
    report_(absl::StrCat("still running ", absl::FormatDuration(options_.stop_grace), " after ",
                         options_.chief.ToString(), " had ended, and being ended now: ", Names(running_)));
    BeginEnding(std::min(options_.stop_grace, options_.last_grace));
  } else if (phase_ == Phase::kEnding) {
    report_(absl::StrCat("did not end when asked to, and being killed now: ", Names(running_)));
    KillAll();
  }
}

void Supervisor::BeginEnding(absl::Duration grace) {
  phase_ = Phase::kEnding;
  restarts_due_.clear();
  deadline_ = clock_.Now() + grace;
  for (const TaskId& task : running_) {
    if (!IsServer(task)) backend_.End(task, EndMode::kGently);
  }
  AskServersToEnd();
}

// When everybody has trained to the end, the ps know, and end by themselves. But of one who died before it had joined
// they know nothing, and would wait for it.
void Supervisor::EndServersOfTheLost() {
  if (!first_failure_.has_value() || running_.empty() || !restarts_due_.empty() || !OnlyServersRun()) return;
  report_(absl::StrCat("nobody is left who trains: ending ", Names(running_)));
  BeginEnding(options_.stop_grace);
}

bool Supervisor::OnlyServersRun() const { return std::all_of(running_.begin(), running_.end(), IsServer); }

void Supervisor::AskServersToEnd() {
  if (servers_asked_ || !OnlyServersRun()) return;
  servers_asked_ = true;
  for (const TaskId& task : running_) backend_.End(task, EndMode::kGently);
}

void Supervisor::KillAll() {
  phase_ = Phase::kKilling;
  deadline_ = absl::InfiniteFuture();
  for (const TaskId& task : running_) backend_.End(task, EndMode::kAtOnce);
}

}  // namespace muster
