// Ends experiments that are in jobs of an engine, for `muster kill`.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "apps/muster/experiment/experiment_command.h"

namespace muster {

struct KillOptions {
  bool now = false;   // kill the tasks without asking them
  bool show = false;  // their states, while this waits
};

// Cancels jobs that wait. Asks the supervisors of others, by a request; those that don't answer, through the engine; in
// the end has the engine cancel the job. Blocks until all have ended; Ctrl-C kills the tasks at once. A grid's runs are
// all meant. An error: an engine can't be asked.
[[nodiscard]] absl::Status KillInJobs(OpenedHome& opened, const std::vector<ExperimentId>& ids,
                                      const KillOptions& options);

}  // namespace muster
