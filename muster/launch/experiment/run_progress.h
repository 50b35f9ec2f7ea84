// Records the progress of a run and its tasks, as its supervisor reports it: in the registry, and as state lines in the
// logs. What the registry can't take now (a full disk, another writer) is kept and retried in order, so that readers of
// the registry never see a state that may not follow the one before. The tasks go on meanwhile. Not thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <map>
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
  // How long a supervisor tries to write the last state when everything else is over.
  static constexpr absl::Duration kLastPatience = absl::Minutes(10);
  // Writes both into the registry, blocking. `tasks`: only those that differ from what was last written, because a
  // thousand tasks that end one by one must not all be written each time.
  using Write = std::function<absl::Status(const RunRecord& run, const std::vector<TaskRecord>& tasks)>;

  // `run` must be as in the registry. Borrows `logs` and `clock`, which must outlive it.
  RunProgress(RunRecord run, TaskLogs& logs, const Clock& clock, Write write)
      : run_(std::move(run)), logs_(logs), clock_(clock), write_(std::move(write)) {}

  // Adds a task of the run, CREATED. The registry shows tasks in this order.
  void Add(const TaskId& task);
  // Adds a task that the registry has, as it is there.
  void Keep(const TaskRecord& record);
  const ExperimentId& id() const { return run_.id; }
  // For everything besides the state; the next Commit writes it.
  RunRecord& run() { return run_; }
  TaskRecord& task(const TaskId& task);  // one that was added
  // Returns the tasks that haven't ended.
  std::vector<TaskId> OpenTasks() const;

  // Sets the state and adds a line to the log. Has no effect if the state is the same. With a state that is no end, the
  // run's reason goes: it was that of an end before, or of what the run waited for.
  void SetRun(RunState state);
  void SetTask(const TaskId& task, RunState state);

  // Makes everything set since the last Commit visible at once, now or once the registry can be written.
  void Commit();
  // Retries what is due.
  void OnTime();
  // Returns when to retry; InfiniteFuture: never.
  absl::Time deadline() const { return retry_at_; }
  // Returns whether everything is in the registry, or will never be.
  bool written() const { return waiting_.empty(); }

 private:
  struct Snapshot {
    RunRecord run;
    std::vector<TaskRecord> tasks;
  };

  // Returns whether a registry that has `before` accepts `after`.
  static bool Fits(const Snapshot& before, const Snapshot& after);
  std::vector<TaskRecord> ChangedTasks(const Snapshot& snapshot) const;
  void WriteWaiting();

  RunRecord run_;
  std::vector<TaskRecord> tasks_;
  std::map<TaskId, size_t> places_;  // in tasks_
  TaskLogs& logs_;
  const Clock& clock_;
  const Write write_;

  std::deque<Snapshot> waiting_;           // oldest first
  std::vector<TaskRecord> written_tasks_;  // in the order of tasks_
  absl::Duration pause_;
  absl::Time retry_at_ = absl::InfiniteFuture();
};

}  // namespace muster
