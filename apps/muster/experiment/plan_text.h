// What `muster train --dry-run` shows: how the experiment file was understood. Pure, thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/muster/experiment/value_sources.h"
#include "muster/launch/spec/experiment_file.h"
#include "muster/launch/spec/parameters.h"

namespace muster {

// Returns, in lines: the project and the number of runs; every parameter with its values; the tasks of each role with
// their resources and commands, filled in with the values of the first of `runs`; the names of the tasks' variables;
// each setting and where it comes from. Needs at least one run. Errors are those of PlanExperiment.
absl::StatusOr<std::string> PlanText(const ExperimentFile& file, const std::vector<ParameterValues>& runs,
                                     const GivenValues& given);

}  // namespace muster
