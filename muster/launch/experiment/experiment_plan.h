// From a file, a run's parameters and the addresses of its servers to the processes to be started. Pure, thread-safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/launch/backend.h"
#include "muster/launch/registry/experiment_id.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/restart_policy.h"
#include "muster/launch/spec/experiment_file.h"
#include "muster/launch/spec/parameters.h"

namespace muster {

struct PlannedTask {
  ProcessSpec process;  // GPUs are added by GiveGpus
  Resources
      resources;  // with torchrun: those of its worker divided by its processes, but for the GPUs, which they share
  RestartPolicy restart;
  int gpu_group = 0;  // tasks with the same number see the same GPUs: the processes of a torchrun worker
};

struct ExperimentPlan {
  TaskId chief;                    // master, or the first worker of torchrun; the one task otherwise
  std::vector<PlannedTask> tasks;  // in the order in which to start them
};

struct ExperimentPlanRequest {
  ExperimentId id;
  ParameterValues parameters;
  std::string work_folder;  // where the tasks run
  std::string output_dir;
  std::string environment_folder;  // a virtual environment; empty: none
  std::string search_path;         // PATH of the user's shell, behind the virtual environment's
  std::string muster_command;      // this program, for a ps of framework muster
  std::string job_token, run_id;
  bool no_gpus = false;
  std::vector<std::string> addresses;  // AddressesNeeded(file) many, in the order of TasksOfFile
  std::vector<int> status_ports;       // of framework muster: one a task; otherwise none
};

// Tasks of the file, in order: ps.1…, master, worker.1…, evaluator; or worker.1… of torchrun, one a process; or the one
// task "master".
std::vector<TaskId> TasksOfFile(const ExperimentFile& file);
// What the file says of the role that one of them has: counts, resources, restarts.
RoleSpec RoleOfTask(const ExperimentFile& file, const TaskId& task);
// Tasks with a server: all of `distributed` but the evaluator, the first of torchrun.
int AddressesNeeded(const ExperimentFile& file);

// OUTPUT_DIR: below the file's `output`, ROOT/4 and for a run of a grid ROOT/4/3; without one below `home`. A grid's
// own is the folder that has those of its runs.
std::string OutputFolder(const ExperimentFile& file, const Home& home, const ExperimentId& id, bool grid);

// Every task's environment: its parameters in capitals, `env`, OUTPUT_DIR, EXPERIMENT_ID, JOB_NAME, PROJECT, TF_CONFIG
// (with distributed), RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and what else torchrun sets, PATH and VIRTUAL_ENV:
// docs/experiments/tasks.md. Its command: the file's `run`, filled in, by one /bin/sh
// that hands SIGTERM on and stops at the first command that fails ("Commands" there); `muster ps` for a ps of framework
// muster. InvalidArgument naming the file's key; of commands also its line, and a line for each mistake.
absl::StatusOr<ExperimentPlan> PlanExperiment(const ExperimentFile& file, const ExperimentPlanRequest& request);

// How many GPUs the plan's tasks ask for together.
int GpusNeeded(const ExperimentPlan& plan);
// Adds CUDA_VISIBLE_DEVICES: every gpu_group gets its own of `gpus` (GpusNeeded many), and a task without any gets "",
// if others have some or `no_gpus`.
void GiveGpus(ExperimentPlan& plan, const std::vector<int>& gpus, bool no_gpus);
// "0,1"; "" without the variable.
std::string VisibleGpus(const PlannedTask& task);

// `commands` as one argument of `/bin/sh -c`.
std::string ShellScript(const std::vector<std::string>& commands);

}  // namespace muster
