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

}  // namespace

Supervisor::Supervisor(const std::vector<TaskId>& running, const SupervisorOptions& options, Backend& backend,
                       const Clock& clock, Report report)
    : options_(options),
      backend_(backend),
      clock_(clock),
      report_(std::move(report)),
      running_(running.begin(), running.end()) {}

void Supervisor::OnExit(const TaskId& task, const ExitStatus& status) {
  if (running_.erase(task) == 0) return;
  const bool by_itself = phase_ == Phase::kTraining || phase_ == Phase::kChiefEnded;
  if (by_itself && !status.ok() && !first_failure_.has_value()) first_failure_ = Failure{task, status};
  if (task == options_.chief) {
    OnChiefExit(status);
  } else if (by_itself && !status.ok() && !running_.empty()) {
    ReportFailure(task, status);
  }
  if (phase_ == Phase::kEnding) AskServersToEnd();
  if (running_.empty()) deadline_ = absl::InfiniteFuture();
}

void Supervisor::OnChiefExit(const ExitStatus& status) {
  exit_code_ = status.ShellCode();
  if (phase_ != Phase::kTraining || running_.empty()) return;
  if (status.ok()) {
    phase_ = Phase::kChiefEnded;
    deadline_ = clock_.Now() + options_.stop_grace;
    return;
  }
  report_(
      absl::StrCat(options_.chief.ToString(), " ", status.ToString(), ": ending the others (", Names(running_), ")"));
  BeginEnding(options_.stop_grace);
}

void Supervisor::ReportFailure(const TaskId& task, const ExitStatus& status) {
  const bool fatal = phase_ == Phase::kTraining && IsServer(task);
  report_(absl::StrCat(
      task.ToString(), " ", status.ToString(),
      fatal ? ": training can't go on without it, the others will find out (Ctrl-C ends them)" : "; the others go on"));
}

void Supervisor::OnInterrupt() {
  ++interrupts_;
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
  deadline_ = clock_.Now() + grace;
  for (const TaskId& task : running_) {
    if (!IsServer(task)) backend_.End(task, EndMode::kGently);
  }
  AskServersToEnd();
}

void Supervisor::AskServersToEnd() {
  if (servers_asked_ || !std::all_of(running_.begin(), running_.end(), IsServer)) return;
  servers_asked_ = true;
  for (const TaskId& task : running_) backend_.End(task, EndMode::kGently);
}

void Supervisor::KillAll() {
  phase_ = Phase::kKilling;
  deadline_ = absl::InfiniteFuture();
  for (const TaskId& task : running_) backend_.End(task, EndMode::kAtOnce);
}

}  // namespace muster
