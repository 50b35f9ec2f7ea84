// Checks whether this machine can run an experiment, before anything of it is created. Stateless.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/launch/experiment/experiment_plan.h"
#include "muster/launch/project/python_version.h"
#include "muster/launch/registry/registry.h"
#include "muster/launch/spec/experiment_file.h"
#include "muster/launch/spec/parameters.h"
#include "muster/launch/task/resources.h"

namespace muster {

// What experiments run on.
struct ExperimentHost {
  Machine machine;
  std::optional<PythonVersion> python;  // nullopt: unknown, or pip has a further place for packages
  Home home;
};
// Returns the user's machine, MUSTER_HOME and, if the file asks for a version, what python3 is. Changes nothing.
ExperimentHost ExperimentHostHere(const ExperimentFile& file);

struct ExperimentCheck {
  std::vector<std::string> problems;  // a line each: all that keeps the experiment from running here
  // What `muster train` needs in addition to run it after all: "--no-gpus", "--no-venv".
  std::vector<std::string> flags;
  std::vector<std::string> missing;  // parameters without a value, which --param would give
  bool flags_help = true;            // whether it runs with all these
};

// Finds every problem: no run at all, a `{{ name }}` without a value, a task that needs more than the machine has, more
// GPUs for all tasks of a run together than it has, a version that this Python can't have, a missing volume; on hosts,
// tasks that have no place, a version that hosts don't have, and commands of `hosts_by` whose program isn't here.
// InvalidArgument: a variable that the file sets isn't the user's to set.
absl::StatusOr<ExperimentCheck> CheckExperiment(const ExperimentFile& file, const std::vector<ParameterValues>& runs,
                                                const SubmitOptions& options, const ExperimentHost& host);

// Returns a line for each value that neither the file nor its commands have, which may be mistyped.
std::vector<std::string> UnknownParameters(const ExperimentFile& file, const ParameterValues& values);

// Returns InvalidArgument with a line for each problem, and one with the command that would run the experiment if there
// is one: `command`, "muster train -f other.yml", with `parameters` (--param's NAME=VALUE) and what the check adds.
[[nodiscard]] absl::Status StatusOf(const ExperimentCheck& check, const std::string& command,
                                    const std::vector<std::string>& parameters);

// Plans the tasks of a run with made-up addresses and ports, to look at. A missing parameter's value is "…".
absl::StatusOr<ExperimentPlan> PlanToLookAt(const ExperimentFile& file, ParameterValues parameters,
                                            const SubmitOptions& options);

}  // namespace muster
