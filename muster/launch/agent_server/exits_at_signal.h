// Tells ends that a signal to the whole job has asked for from those of the tasks' own. Slurm, for example, sends
// SIGTERM to all processes of a step when it preempts the job with a grace time, and to nobody else; a task that
// answers with an exit code, even 0, has neither finished nor failed. The agent gets that signal beside its tasks,
// maybe a moment after one of them has ended, so every end waits for that moment, and all are told in the order in
// which they came. Used by the loop's thread.
#pragma once

#include <deque>
#include <vector>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/launch/agent/entries.h"
#include "muster/launch/task/exit_status.h"

namespace muster {

class ExitsAtSignal {
 public:
  // Ample for the loop in which Slurm signals one process of the step after the other.
  static constexpr absl::Duration kSettle = absl::Milliseconds(100);
  // How long after a signal an end counts as its answer. A task that is still there then didn't end because of it.
  static constexpr absl::Duration kAnswer = absl::Minutes(10);

  struct Exit {
    CommandId launch;
    bool at_signal = false;
  };

  // `settle`: how long an end waits; 0: nobody signals tasks and agent together, and no end is marked. Borrows `clock`.
  ExitsAtSignal(absl::Duration settle, const Clock& clock) : settle_(settle), clock_(clock) {}

  // The agent has got a signal.
  void OnSignal();
  // A launch that began at `begun` has ended.
  void OnExit(const CommandId& launch, const ExitStatus& status, absl::Time begun);
  // When TakeDue has something.
  absl::Time deadline() const;
  // Returns the ends that are to be told now.
  std::vector<Exit> TakeDue();

 private:
  struct Waiting {
    Exit exit;
    bool by_code = false;  // the task has ended by itself, with an exit code
    absl::Time due;
  };

  const absl::Duration settle_;
  const Clock& clock_;

  absl::Time signalled_ = absl::InfinitePast();
  std::deque<Waiting> waiting_;  // in the order of the ends
};

}  // namespace muster
