// Checks whether this machine can run an experiment, before anything of it is created. Stateless.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "muster/launch/registry/registry.h"
#include "muster/launch/spec/experiment_file.h"
#include "muster/launch/spec/parameters.h"
#include "muster/launch/task/resources.h"

namespace muster {

// Returns InvalidArgument with one line per mistake: no run at all, a `{{ name }}` without a value, a task that needs
// more than the machine has, a missing volume, more GPUs for all tasks of a run together than the machine has.
[[nodiscard]] absl::Status CheckExperiment(const ExperimentFile& file, const std::vector<ParameterValues>& runs,
                                           const SubmitOptions& options, const Machine& machine);

}  // namespace muster
