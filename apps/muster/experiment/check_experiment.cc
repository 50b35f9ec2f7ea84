#include "apps/muster/experiment/check_experiment.h"

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/status_macros.h"
#include "muster/launch/experiment/experiment_plan.h"

namespace muster {
namespace {

// Plans the tasks with made-up addresses.
absl::StatusOr<ExperimentPlan> PlanForCheck(const ExperimentFile& file, const ParameterValues& parameters,
                                            const SubmitOptions& options) {
  ExperimentPlanRequest request;
  request.id = {.number = 1};
  request.parameters = parameters;
  request.output_dir = "/";
  request.muster_command = "muster";
  request.no_gpus = options.no_gpus;
  const int addresses = AddressesNeeded(file);
  for (int i = 0; i < addresses; ++i) request.addresses.push_back(absl::StrCat("127.0.0.1:", 1 + i));
  if (file.framework == Framework::kMuster) {
    const size_t tasks = TasksOfFile(file).size();
    for (size_t i = 0; i < tasks; ++i) request.status_ports.push_back(static_cast<int>(1 + i));
  }
  return PlanExperiment(file, request);
}

}  // namespace

absl::Status CheckExperiment(const ExperimentFile& file, const std::vector<ParameterValues>& runs,
                             const SubmitOptions& options, const Machine& machine) {
  if (runs.empty())
    return absl::InvalidArgumentError(
        absl::StrCat(file.name, ": its parameters have no combination: each needs at least one value"));
  // All runs have the same tasks and parameter names.
  ASSIGN_OR_RETURN(const ExperimentPlan plan, PlanForCheck(file, runs.front(), options));
  std::vector<std::string> lacks;
  for (const PlannedTask& task : plan.tasks) {
    Resources wanted = task.resources;
    if (options.no_gpus) wanted.gpus.reset();
    const TaskId& id = task.process.task;
    const absl::Status fits = CheckFits(id.job, wanted, machine);
    if (fits.ok() || id.index > 0) continue;  // all tasks of a role have the same limits
    lacks.push_back(absl::StrCat(RoleOfTask(file, id).resources_place, ": ", std::string(fits.message())));
  }
  for (const VolumeSpec& volume : file.volumes) {
    std::error_code error;
    if (!std::filesystem::exists(volume.host, error))
      lacks.push_back(absl::StrCat(file.name, ": train.volumes: ", volume.host,
                                   " doesn't exist; accepted: a folder or a file of this machine"));
  }
  if (!lacks.empty()) return absl::InvalidArgumentError(absl::StrJoin(lacks, "\n"));
  const int gpus = options.no_gpus ? 0 : GpusNeeded(plan);
  if (gpus <= machine.gpus) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(file.name, ": the tasks ask for ", gpus,
                                                 " gpus together, this machine has ", machine.gpus,
                                                 "; --no-gpus runs without"));
}

}  // namespace muster
