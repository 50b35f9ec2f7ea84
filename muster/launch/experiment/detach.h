// Starts a supervisor that outlives the terminal: `muster supervise ID`, in a session of its own, without any of the
// caller's open files. So is a collector started (docs/far_homes.md). Thread-safe.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/statusor.h"
#include "muster/launch/registry/experiment_id.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/registry/run_lock.h"

namespace muster {

struct SupervisorStart {
  std::string muster_command;
  mode_t users_umask = 022;  // the supervisor's, from which it takes what its tasks get
  // Makes it this process's child: a grid waits for its runs, and SIGTERM ends them when it dies.
  bool as_child = false;
};

// Passes `lock` on to the supervisor. Its stdin is /dev/null, its stdout and stderr go to Home::supervisor_log. It
// works in /, ignores SIGHUP, starts with SIGINT and SIGTERM blocked until it listens to them (EndingSignals), and has
// this process's environment except MUSTER_RUN_ID and MUSTER_AGENT_ID, and MUSTER_DETACHED. Returns its pid once it
// runs. On an error nothing runs: `muster_command` can't be executed or the log can't be written (ResourceExhausted: no
// room for it).
absl::StatusOr<pid_t> StartSupervisor(const Home& home, const ExperimentId& id, RunLock lock,
                                      const SupervisorStart& start);

// The same for `muster home collect ID`, whose stdout and stderr go to `log_path`. `lock` is that of the run's
// collector.
absl::StatusOr<pid_t> StartCollector(const Home& home, const ExperimentId& id, RunLock lock,
                                     const std::string& log_path, const SupervisorStart& start);

}  // namespace muster
