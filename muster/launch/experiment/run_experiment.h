// The supervisor of one run, from CREATED to its end: builds if needed, waits for GPUs, starts, watches, restarts and
// ends the tasks, and writes what happens to the registry and the logs. One process, one thread. It has no terminal and
// no user who waits: it retries whatever can't be written, and the tasks go on meanwhile.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "muster/launch/registry/experiment_id.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/registry/run_lock.h"

namespace muster {

// Blocks until the run has ended; returns its exit code. SIGTERM and SIGINT end it (KILLED), a second one kills it at
// once. `muster_command`: this program, for ps of framework muster. Returns an error if the registry couldn't be read,
// and then starts nothing. Any other failure ends the run, with its reason in the registry.
absl::StatusOr<int> RunExperiment(const Home& home, const ExperimentId& id, RunLock lock,
                                  const std::string& muster_command);

// Does the same for a grid: keeps `concurrency` runs going, each under a supervisor of its own, until all have ended.
// Returns 0 if all finished. Signals that end it are passed on to the runs; those that haven't started are KILLED.
absl::StatusOr<int> RunGrid(const Home& home, int64_t number, RunLock lock, const std::string& muster_command);

}  // namespace muster
