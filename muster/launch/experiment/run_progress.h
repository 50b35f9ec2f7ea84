// How far a run and its tasks have come, as its supervisor tells it: to the registry, and as lines of state in the
// logs. What the registry doesn't take now (a full disk, another writer) is kept and tried again, in its order, so that
// nothing that watches the registry sees a state that may not follow the one before; the tasks go on meanwhile. Not
// thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/launch/experiment/task_logs.h"
#include "muster/launch/registry/registry.h"

namespace muster {

class RunProgress {
 public:
  // How long a supervisor tries to get the last state written when everything else is over.
  static constexpr absl::Duration kLastPatience = absl::Minutes(10);
  // Writes both into the registry, blocking. `tasks`: those that aren't as they were last written; of a thousand that
  // end one after the other not all each time.
  using Write = std::function<absl::Status(const RunRecord& run, const std::vector<TaskRecord>& tasks)>;

  // `run` as the registry has it. Borrows `logs` and `clock`, which must outlive it.
  RunProgress(RunRecord run, TaskLogs& logs, const Clock& clock, Write write)
      : run_(std::move(run)), logs_(logs), clock_(clock), write_(std::move(write)) {}

  // A task that the run has, CREATED. The registry shows them in this order.
  void Add(const TaskId& task);
  const ExperimentId& id() const { return run_.id; }
  // For what there is to know besides the state; written by the next Commit.
  RunRecord& run() { return run_; }
  TaskRecord& task(const TaskId& task);  // one that was added
  // Those that haven't ended.
  std::vector<TaskId> OpenTasks() const;

  // A line in the log. A state that is already there changes nothing.
  void SetRun(RunState state);
  void SetTask(const TaskId& task, RunState state);

  // Everything set since the last Commit becomes visible at once, now or once the registry can be written.
  void Commit();
  // Tries again what is due.
  void OnTime();
  // When there is something to try again; InfiniteFuture: never.
  absl::Time deadline() const { return retry_at_; }
  // Everything is in the registry, or it will never be.
  bool written() const { return waiting_.empty(); }

 private:
  struct Snapshot {
    RunRecord run;
    std::vector<TaskRecord> tasks;
  };

  // Whether a registry that has `before` takes `after`.
  static bool Fits(const Snapshot& before, const Snapshot& after);
  std::vector<TaskRecord> ChangedTasks(const Snapshot& snapshot) const;
  void WriteWaiting();

  RunRecord run_;
  std::vector<TaskRecord> tasks_;
  TaskLogs& logs_;
  const Clock& clock_;
  const Write write_;

  std::deque<Snapshot> waiting_;           // oldest first
  std::vector<TaskRecord> written_tasks_;  // in the order of tasks_
  absl::Duration pause_;
  absl::Time retry_at_ = absl::InfiniteFuture();
};

}  // namespace muster
