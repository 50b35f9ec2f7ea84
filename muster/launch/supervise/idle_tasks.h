// Finds tasks that hang once the task that decides has ended: they neither write nor compute. A worker that trains on
// does one or the other. A state machine without a clock; not thread-safe.
#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "muster/cluster/task_id.h"

namespace muster {

class IdleTasks {
 public:
  // How often CPU time is asked for. Less than kIdleShare of a core is nothing: heartbeats take some.
  static constexpr absl::Duration kLookEvery = absl::Seconds(30);
  static constexpr double kIdleShare = 0.02;

  // Returns what the processes of each of these tasks have used so far; none: unknown. It looks at all of a machine's
  // processes, so it is asked once for all tasks.
  using CpuSeconds = std::function<std::map<TaskId, double>(const std::vector<TaskId>& tasks)>;

  IdleTasks(absl::Duration grace, CpuSeconds cpu_seconds) : grace_(grace), cpu_seconds_(std::move(cpu_seconds)) {}

  // From now on.
  void Watch(const std::vector<TaskId>& tasks, absl::Time now);
  void NoteOutput(const TaskId& task, absl::Time now);
  void Forget(const TaskId& task) { tasks_.erase(task); }
  // Returns when to call Take; InfiniteFuture if nothing is watched.
  absl::Time deadline() const;
  // Returns those that have been idle for the grace, each once.
  std::vector<TaskId> Take(absl::Time now);

 private:
  struct State {
    absl::Time active_at;  // wrote, computed, or was given to Watch
    absl::Time looked_at;
    double cpu_seconds = 0;
  };

  const absl::Duration grace_;
  const CpuSeconds cpu_seconds_;
  std::map<TaskId, State> tasks_;
};

}  // namespace muster
