#include "muster/launch/supervise/idle_tasks.h"

#include <algorithm>

namespace muster {

void IdleTasks::Watch(const std::vector<TaskId>& tasks, absl::Time now) {
  if (grace_ == absl::InfiniteDuration() || tasks.empty()) return;
  std::map<TaskId, double> used = cpu_seconds_(tasks);
  for (const TaskId& task : tasks) tasks_[task] = {.active_at = now, .looked_at = now, .cpu_seconds = used[task]};
}

void IdleTasks::NoteOutput(const TaskId& task, absl::Time now) {
  if (const auto found = tasks_.find(task); found != tasks_.end()) found->second.active_at = now;
}

absl::Time IdleTasks::deadline() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [task, state] : tasks_) next = std::min(next, state.looked_at + kLookEvery);
  return next;
}

std::vector<TaskId> IdleTasks::Take(absl::Time now) {
  std::vector<TaskId> due, idle;
  for (const auto& [task, state] : tasks_)
    if (now >= state.looked_at + kLookEvery) due.push_back(task);
  if (due.empty()) return idle;
  std::map<TaskId, double> used = cpu_seconds_(due);
  for (const TaskId& task : due) {
    State& state = tasks_[task];
    const double since = used[task] - state.cpu_seconds;
    if (since > kIdleShare * absl::ToDoubleSeconds(now - state.looked_at)) state.active_at = now;
    state.looked_at = now;
    state.cpu_seconds = used[task];
    if (now >= state.active_at + grace_) idle.push_back(task);
  }
  for (const TaskId& task : idle) tasks_.erase(task);
  return idle;
}

}  // namespace muster
