// Submits an experiment as a job of an engine, a grid as one for each run, for `muster train` and `muster rerun`.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "apps/muster/experiment/experiment_command.h"

namespace muster {

// Says on stderr which job it is. The caller holds the run's lock. InvalidArgument has the engine's refusal.
[[nodiscard]] absl::Status SubmitJobs(OpenedHome& opened, const ExperimentId& id, const NewExperiment& experiment,
                                      const std::string& muster);

}  // namespace muster
