// The supervisor of one run, from CREATED to its end: builds if that is due, waits for GPUs, starts the tasks, watches,
// restarts and ends them, and writes what happens to the registry and the logs. One process, one thread; it has no
// terminal and nobody's patience: whatever can't be written is tried again, the tasks go on.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "muster/launch/registry/experiment_id.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/registry/run_lock.h"

namespace muster {

// Blocks until the run has ended; returns its exit code. SIGTERM and SIGINT end it (KILLED), a second one at once.
// `muster_command`: this program, for ps of framework muster. An error: the registry couldn't be read, nothing was
// started; whatever else goes wrong is the run's end, with its reason in the registry.
absl::StatusOr<int> RunExperiment(const Home& home, const ExperimentId& id, RunLock lock,
                                  const std::string& muster_command);

// The same for a grid: keeps `concurrency` runs going, each under a supervisor of its own, until all have ended. 0 if
// all finished. Its end signals go to the runs, and those that haven't been started are KILLED.
absl::StatusOr<int> RunGrid(const Home& home, int64_t number, RunLock lock, const std::string& muster_command);

}  // namespace muster
