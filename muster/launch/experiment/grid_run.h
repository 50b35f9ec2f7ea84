// The supervisor of a grid: a supervisor of supervisors, one of each run (experiment_run.h). One process, one thread.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "muster/launch/experiment/supervisor_setting.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/registry/registry.h"
#include "muster/launch/registry/run_lock.h"

namespace muster {

// Keeps `concurrency` runs going, each under a supervisor of its own, until all have ended.
// Returns 0 if all finished. Signals that end it are passed on to the runs; those that haven't started are KILLED.
absl::StatusOr<int> RunGrid(const Home& home, Registry& registry, int64_t number, RunLock lock,
                            const SupervisorSetting& setting);

}  // namespace muster
