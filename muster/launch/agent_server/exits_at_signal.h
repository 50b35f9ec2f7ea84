// Tells an end that a signal has asked for from one of the task's own. Slurm, for example, sends SIGTERM to all
// processes of a step when it preempts the job with a grace time, and to nobody else; a task that answers with exit
// code 0 hasn't finished. The agent gets that signal beside its tasks, maybe a moment after them: a good end waits for
// so long. Stands between a backend and who takes its events, to whom all the rest goes as it comes. Used by the loop's
// thread.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/launch/backends/backend.h"

namespace muster {

class ExitsAtSignal final : public BackendEvents {
 public:
  // Ample for the loop in which Slurm signals one process of the step after the other.
  static constexpr absl::Duration kSettle = absl::Milliseconds(100);

  // `settle`: how long a good end waits; 0: nobody signals tasks and agent together, and nothing is changed. Borrows
  // both others, which must outlive it.
  ExitsAtSignal(BackendEvents& events, absl::Duration settle, const Clock& clock)
      : events_(events), settle_(settle), clock_(clock) {}

  // The agent has got a signal: good ends of the tasks that run get ExitStatus::at_signal.
  void OnSignal();
  absl::Time deadline() const;
  // Tells the ends that have waited long enough.
  void OnTime();

  void OnReserved(const TaskId& task, const std::vector<std::string>& addresses) override {
    events_.OnReserved(task, addresses);
  }
  void OnNotReserved(const TaskId& task, const absl::Status& why) override { events_.OnNotReserved(task, why); }
  void OnStarted(const TaskId& task, const LocalProcess& process) override;
  void OnNotStarted(const TaskId& task, const absl::Status& why) override { events_.OnNotStarted(task, why); }
  void OnOutput(const TaskId& task, OutputStream stream, std::string_view bytes) override {
    events_.OnOutput(task, stream, bytes);
  }
  void OnExit(const TaskId& task, const ExitStatus& status) override;

 private:
  BackendEvents& events_;
  const absl::Duration settle_;
  const Clock& clock_;

  bool was_signalled_ = false;
  std::set<TaskId> begun_since_;             // the last signal
  std::map<TaskId, absl::Time> ended_well_;  // and when that is told
};

}  // namespace muster
