// Starts a supervisor that outlives the terminal: `muster supervise ID`, in a session of its own, with none of the
// caller's files open. Thread-safe.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/statusor.h"
#include "muster/launch/registry/experiment_id.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/registry/run_lock.h"

namespace muster {

// Gives `lock` to it. stdin is /dev/null, stdout and stderr go to Home::supervisor_log; it works in /, ignores SIGHUP,
// finds SIGINT and SIGTERM blocked until it listens to them (EndingSignals), and has this process's environment but for
// MUSTER_RUN_ID. Returns its pid, once it runs; an error, and nothing runs, if `muster_command` can't be executed or
// the log not be written. It isn't this process's child (unless `as_child`: a grid waits for its runs, and they are
// ended by SIGTERM when it dies).
absl::StatusOr<pid_t> StartSupervisor(const Home& home, const ExperimentId& id, RunLock lock,
                                      const std::string& muster_command, bool as_child = false);

}  // namespace muster
