// Starts a supervisor that outlives the terminal: `muster supervise ID`, in a session of its own.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/statusor.h"
#include "muster/launch/registry/experiment_id.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/registry/run_lock.h"

namespace muster {

// Gives `lock` to it. stdin is /dev/null, stdout and stderr go to Home::supervisor_log. Returns its pid, once it runs.
// It isn't this process's child (unless `as_child`: a grid waits for its runs).
absl::StatusOr<pid_t> StartSupervisor(const Home& home, const ExperimentId& id, RunLock lock,
                                      const std::string& muster_command, bool as_child = false);

}  // namespace muster
