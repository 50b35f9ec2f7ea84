// Whether this machine can run an experiment, found out before anything of it is created. Stateless.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "muster/launch/registry/registry.h"
#include "muster/launch/spec/experiment_file.h"
#include "muster/launch/spec/parameters.h"
#include "muster/launch/task/resources.h"

namespace muster {

// InvalidArgument, a line for each mistake: no run at all, a `{{ name }}` without a value, a task that wants more than
// the machine has, a volume that isn't there, more GPUs than it has for all tasks of a run together.
[[nodiscard]] absl::Status CheckExperiment(const ExperimentFile& file, const std::vector<ParameterValues>& runs,
                                           const SubmitOptions& options, const Machine& machine);

}  // namespace muster
