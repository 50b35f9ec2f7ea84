// Gets the hosts of a run by the experiment's own commands (docs/command_engine.md), before its tasks are placed:
// meanwhile it is PENDING, and says why it waits. Used by its supervisor's only thread.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "muster/launch/engines/command/held_hosts.h"
#include "muster/launch/experiment/supervisor_setting.h"
#include "muster/launch/registry/registry.h"
#include "muster/launch/spec/experiment_file.h"

namespace muster {

struct AcquireOrder {
  const Home& home;
  const ExperimentFile& file;
  const SubmitOptions& options;  // with commands
  const SupervisorSetting& setting;
};

// Blocks until they are there. Returns null once the run has ended without: its end, by `muster kill` too, is in the
// registry and its logs. Brings `run` up to date. An error: the registry can't be written.
absl::StatusOr<std::unique_ptr<HeldHosts>> AcquireForRun(const AcquireOrder& order, Registry& registry, RunRecord& run);

}  // namespace muster
