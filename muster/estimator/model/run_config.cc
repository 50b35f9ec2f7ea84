#include "muster/estimator/model/run_config.h"

#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/algo/choice/algorithm_table.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"

namespace muster {
namespace {

template <typename T>
absl::Status WrongRunConfigField(const char* field, const T& value, const char* accepted) {
  return WrongOptionError(absl::StrCat("RunConfig.", field, " is ", value, "; accepted: ", accepted));
}

constexpr char kRunConfigNotNegative[] = "0 or more";

// Written so that NaN is in no range.
absl::Status CheckRunConfigNumbers(const RunConfig& config) {
  if (config.save_checkpoints_secs && config.save_checkpoints_steps)
    return WrongOptionError(absl::StrCat("RunConfig has both save_checkpoints_secs (", *config.save_checkpoints_secs,
                                         ") and save_checkpoints_steps (", *config.save_checkpoints_steps,
                                         "); accepted: one of them, or neither"));
  if (config.save_checkpoints_secs && !(*config.save_checkpoints_secs >= 0))
    return WrongRunConfigField("save_checkpoints_secs", *config.save_checkpoints_secs, kRunConfigNotNegative);
  if (config.save_checkpoints_steps && *config.save_checkpoints_steps < 0)
    return WrongRunConfigField("save_checkpoints_steps", *config.save_checkpoints_steps, kRunConfigNotNegative);
  if (config.save_summary_steps < 0)
    return WrongRunConfigField("save_summary_steps", config.save_summary_steps, kRunConfigNotNegative);
  if (config.log_step_count_steps < 0)
    return WrongRunConfigField("log_step_count_steps", config.log_step_count_steps, kRunConfigNotNegative);
  if (config.keep_checkpoint_max < 0)
    return WrongRunConfigField("keep_checkpoint_max", config.keep_checkpoint_max, "0, which keeps all, or more");
  if (!(config.keep_checkpoint_every_n_hours > 0))
    return WrongRunConfigField("keep_checkpoint_every_n_hours", config.keep_checkpoint_every_n_hours, "more than 0");
  if (!(config.session_creation_timeout_secs >= 0))
    return WrongRunConfigField("session_creation_timeout_secs", config.session_creation_timeout_secs,
                               kRunConfigNotNegative);
  return absl::OkStatus();
}

absl::Status CheckRunConfigFields(const RunConfig& config) {
  RETURN_IF_ERROR(CheckRunConfigNumbers(config));
  const absl::Status session = CheckSessionConfig(config.session_config);
  if (!session.ok()) return WrongOptionError(absl::StrCat("RunConfig.session_config: ", session.message()));
  if (FindAlgorithm(config.algorithm.name) == nullptr)
    return WrongOptionError(absl::StrCat("RunConfig.algorithm: ", UnknownAlgorithm(config.algorithm.name).message()));
  return absl::OkStatus();
}

absl::StatusOr<TaskConfig> RunConfigTask(const Environment& environment) {
  std::vector<std::string> no_flags;
  absl::StatusOr<TaskConfig> task = TaskConfig::FromArguments(no_flags, environment);
  if (!task.ok()) return AsWrongConfiguration(task.status());
  if (!task->notice().empty()) LogLineOnce(LogLevel::kInfo, task->notice());
  return task;
}

absl::StatusOr<std::string> MakeTemporaryModelDir() {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  std::string folder = (error ? std::filesystem::path("/tmp") : parent) / "muster-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr)
    return WrongOptionError(absl::StrCat("RunConfig.model_dir isn't set, and no temporary folder ", folder,
                                         " can be made; give a model_dir"));
  return folder;
}

absl::StatusOr<std::string> RunConfigModelDir(const RunConfig& config) {
  const std::string& said = config.task->model_dir();
  if (!config.model_dir.empty()) {
    if (!said.empty() && said != config.model_dir)
      return WrongOptionError(absl::StrCat("RunConfig.model_dir is '", config.model_dir,
                                           "', and that of TF_CONFIG (or --model_dir) '", said,
                                           "'; accepted: one of them, or the same"));
    return config.model_dir;
  }
  if (!said.empty()) return said;
  if (config.task->is_evaluator())
    return WrongOptionError(
        "an evaluator needs a model_dir, the folder of the checkpoints that it evaluates: give the program or muster "
        "run --model_dir, or set RunConfig.model_dir or TF_CONFIG's");
  if (config.task->is_ps()) return std::string();  // it keeps no files
  // Nobody else would find a temporary folder: neither an evaluator nor the chief of the next run.
  if (config.task->distributed() && config.task->is_chief())
    return WrongOptionError(
        "the chief of a cluster needs a model_dir, where an evaluator and the next run find its checkpoints: give "
        "every task --model_dir=FOLDER (or muster run --model_dir FOLDER), or set RunConfig.model_dir or TF_CONFIG's");
  ASSIGN_OR_RETURN(std::string folder, MakeTemporaryModelDir());
  LogWarning("Using temporary folder as model directory: ", folder);
  return folder;
}

}  // namespace

absl::StatusOr<RunConfig> ResolveRunConfig(RunConfig config, const Environment& environment) {
  RETURN_IF_ERROR(CheckRunConfigFields(config));
  if (!config.task) {
    ASSIGN_OR_RETURN(config.task, RunConfigTask(environment));
  }
  const TaskConfig& task = *config.task;
  if (task.is_evaluator() && task.task().index != 0)
    return WrongOptionError(
        absl::StrCat("this task is ", task.task().ToString(), ", and there is one evaluator; accepted: task index 0"));
  ASSIGN_OR_RETURN(config.model_dir, RunConfigModelDir(config));
  config.log_device_placement = config.log_device_placement || config.session_config.log_device_placement;
  config.session_config.log_device_placement = config.log_device_placement;
  return config;
}

std::string TaskTypeOf(const RunConfig& config) { return config.task->task().job; }

int NumWorkerReplicas(const RunConfig& config) { return config.task->num_workers(); }

std::string CheckpointFrequencyText(const RunConfig& config) {
  if (config.save_checkpoints_steps) return absl::StrCat("save_checkpoints_steps = ", *config.save_checkpoints_steps);
  return absl::StrCat("save_checkpoints_secs = ", config.save_checkpoints_secs.value_or(kSaveCheckpointsSecs));
}

std::string RunConfigText(const RunConfig& config) {
  const TaskConfig& task = *config.task;
  return absl::StrCat("model_dir = ", config.model_dir, ", seed = ", config.seed ? absl::StrCat(*config.seed) : "None",
                      ", save_summary_steps = ", config.save_summary_steps, ", ", CheckpointFrequencyText(config),
                      ", keep_checkpoint_max = ", config.keep_checkpoint_max,
                      ", keep_checkpoint_every_n_hours = ", config.keep_checkpoint_every_n_hours,
                      ", log_step_count_steps = ", config.log_step_count_steps, ", algorithm = ", config.algorithm.name,
                      ", task_type = ", TaskTypeOf(config), ", task_id = ", task.task().index,
                      ", is_chief = ", task.is_chief() ? "true" : "false",
                      ", num_worker_replicas = ", NumWorkerReplicas(config), ", num_ps_replicas = ", task.num_ps());
}

}  // namespace muster
