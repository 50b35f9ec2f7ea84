#include "muster/launch/agent_server/exits_at_signal.h"

#include <algorithm>

namespace muster {

void ExitsAtSignal::OnSignal() {
  if (settle_ == absl::ZeroDuration()) return;
  was_signalled_ = true;
  begun_since_.clear();
  for (const auto& [task, due] : std::exchange(ended_well_, {})) events_.OnExit(task, {.at_signal = true});
}

absl::Time ExitsAtSignal::deadline() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [task, due] : ended_well_) next = std::min(next, due);
  return next;
}

void ExitsAtSignal::OnTime() {
  const absl::Time now = clock_.Now();
  std::vector<TaskId> due;
  for (const auto& [task, when] : ended_well_)
    if (when <= now) due.push_back(task);
  for (const TaskId& task : due) {
    ended_well_.erase(task);
    events_.OnExit(task, {});
  }
}

void ExitsAtSignal::OnStarted(const TaskId& task, const LocalProcess& process) {
  if (was_signalled_) begun_since_.insert(task);
  events_.OnStarted(task, process);
}

void ExitsAtSignal::OnExit(const TaskId& task, const ExitStatus& status) {
  const bool runs_since = begun_since_.erase(task) > 0;
  if (!status.ok() || settle_ == absl::ZeroDuration()) return events_.OnExit(task, status);
  if (was_signalled_ && !runs_since) return events_.OnExit(task, {.at_signal = true});
  ended_well_[task] = clock_.Now() + settle_;
}

}  // namespace muster
