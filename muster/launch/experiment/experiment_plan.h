// From a file, a run's parameters and the addresses of its servers to the processes to be started. Pure, thread-safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/launch/backend.h"
#include "muster/launch/registry/experiment_id.h"
#include "muster/launch/restart_policy.h"
#include "muster/launch/spec/experiment_file.h"
#include "muster/launch/spec/parameters.h"

namespace muster {

struct PlannedTask {
  ProcessSpec process;  // gpus' and cgroup's variables are added when it is started
  Resources resources;
  RestartPolicy restart;
};

struct ExperimentPlan {
  TaskId chief;                    // master, or the first worker of torchrun; the one task otherwise
  std::vector<PlannedTask> tasks;  // in the order in which to start them
};

struct ExperimentPlanRequest {
  ExperimentId id;
  ParameterValues parameters;
  std::string output_dir;
  std::string environment_folder;  // a virtual environment; empty: none
  std::string muster_command;      // this program, for a ps of framework muster
  std::string job_token, run_id;
  bool no_gpus = false;
  std::vector<std::string> addresses;  // AddressesNeeded(file) many
  std::vector<int> status_ports;       // of framework muster: one a task; otherwise none
};

// Tasks of the file, in order: ps.1…, master, worker.1…, evaluator; or worker.1… of torchrun; or the one task "master".
std::vector<TaskId> TasksOfFile(const ExperimentFile& file);
int AddressesNeeded(const ExperimentFile& file);

// Every task's environment: its parameters in capitals, `env`, OUTPUT_DIR, EXPERIMENT_ID, JOB_NAME, PROJECT, TF_CONFIG
// (with distributed), RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, GROUP_RANK, MASTER_ADDR, MASTER_PORT (torchrun),
// PATH and VIRTUAL_ENV. Its command: the file's `run`, filled in, by one /bin/sh that hands SIGTERM on and stops at the
// first command that fails (docs/experiments.md, "Commands"); `muster ps` for a ps of framework muster. InvalidArgument
// naming the file's key.
absl::StatusOr<ExperimentPlan> PlanExperiment(const ExperimentFile& file, const ExperimentPlanRequest& request);

// `commands` as one argument of `/bin/sh -c`.
std::string ShellScript(const std::vector<std::string>& commands);

}  // namespace muster
