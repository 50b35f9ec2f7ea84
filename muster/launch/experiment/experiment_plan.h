// Turns a file, a run's parameters and the addresses of its servers into the processes to start. Pure, thread-safe.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/launch/backends/backend.h"
#include "muster/launch/registry/experiment_id.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/spec/experiment_file.h"
#include "muster/launch/spec/parameters.h"
#include "muster/launch/task/exit_status.h"
#include "muster/launch/task/restart_policy.h"

namespace muster {

struct PlannedTask {
  ProcessSpec process;  // GiveGpus adds the GPUs
  Resources
      resources;  // with torchrun: those of its worker divided by its processes, but for the GPUs, which they share
  RestartPolicy restart;
  int gpu_group = 0;  // tasks with the same number see the same GPUs: the processes of a torchrun worker
};

struct ExperimentPlan {
  TaskId chief;                    // the master, or the first worker of torchrun; otherwise the only task
  std::vector<PlannedTask> tasks;  // in the order in which to start them
};

struct ExperimentPlanRequest {
  ExperimentId id;
  ParameterValues parameters;
  std::string work_folder;  // where the tasks run
  std::string output_dir;
  std::string environment_folder;  // a virtual environment; empty: none
  std::string search_path;         // PATH of the user's shell, searched after the virtual environment
  std::string muster_command;      // this program, for a ps of framework muster
  std::string job_token, run_id;
  bool no_gpus = false;
  bool has_threads = false;                 // the user's environment says how many threads a process computes with
  std::map<TaskId, std::string> placement;  // on hosts, by name; without: all tasks are on this machine
  std::vector<std::string> addresses;       // AddressesNeeded(file) many, in the order of TasksOfFile
  std::string setup_key;                    // as SetupKey
  std::vector<int> status_ports;            // of framework muster: one per task; otherwise empty
};

// Returns the tasks of the file in the order in which to start them: ps.1…, master, worker.1…, evaluator; or, with
// torchrun, worker.1…, one per process; or the one task "master".
std::vector<TaskId> TasksOfFile(const ExperimentFile& file);
// Returns the master, or the first worker of torchrun.
TaskId ChiefOfFile(const ExperimentFile& file);
// Returns what the file says about the task's role: counts, resources, restarts.
RoleSpec RoleOfTask(const ExperimentFile& file, const TaskId& task);
// Returns whether the task has a server: all of `distributed` but the evaluator, the first of torchrun.
bool HasServer(const ExperimentFile& file, const TaskId& task);
// Returns the number of tasks with a server.
int AddressesNeeded(const ExperimentFile& file);

// Returns OUTPUT_DIR. It is below the file's `output`, ROOT/4 and for a run of a grid ROOT/4/3; without `output` it is
// below `home`. A grid's own is the folder that contains those of its runs.
std::string OutputFolder(const ExperimentFile& file, const Home& home, const ExperimentId& id, bool grid);

// Plans the processes. Every task's environment has its parameters in capitals, `env`, OUTPUT_DIR, EXPERIMENT_ID,
// JOB_NAME, PROJECT, TF_CONFIG (with distributed), RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and what else torchrun
// sets, PATH and VIRTUAL_ENV: docs/experiments/tasks.md. Its command is the file's
// `run`, filled in, run by one /bin/sh that passes SIGTERM on and stops at the first command that fails ("Commands"
// there); for a ps of framework muster it is `muster ps`. InvalidArgument naming the file's key, and for commands also
// the line, with one line per mistake.
absl::StatusOr<ExperimentPlan> PlanExperiment(const ExperimentFile& file, const ExperimentPlanRequest& request);

// Returns what PlanExperiment would say of the commands of the first run that can't be planned: a value may be accepted
// in a command where another isn't (ShellText).
[[nodiscard]] absl::Status CheckCommands(const ExperimentFile& file, const std::vector<ParameterValues>& runs);

// Returns how many GPUs the plan's tasks ask for together.
int GpusNeeded(const ExperimentPlan& plan);
// Adds CUDA_VISIBLE_DEVICES: every gpu_group gets GPUs of its own out of `gpus` (GpusNeeded many). A task without GPUs
// gets "" if other tasks have some or `no_gpus` is set.
void GiveGpus(ExperimentPlan& plan, const std::vector<int>& gpus, bool no_gpus);
// The same for tasks on hosts, by `placement`: those of each host are numbered from 0.
void GiveGpusOnHosts(ExperimentPlan& plan, const std::map<TaskId, std::string>& placement, bool no_gpus);
// The same for a plan that was made anew because a task goes to another host, on which no other task that goes on has
// GPUs: its own are numbered from 0 there, the others keep those of the plan `before`. No task's id: all keep them.
void GiveGpusAgain(ExperimentPlan& plan, const ExperimentPlan& before, const TaskId& moved, bool no_gpus);
// Returns "0,1", or "" without the variable.
std::string VisibleGpus(const PlannedTask& task);

// Explains a shell's common exit codes in words; "" for others.
std::string WhatTheShellMeant(const ExitStatus& status, const std::deque<std::string>& last_lines,
                              const std::string& host);

// Whether the script of several commands says on stderr which of them has failed.
enum class FailedCommand { kNamed, kNotNamed };

// Returns `commands` as one argument of `/bin/sh -c`, which becomes a simple command if that is the only one.
std::string ShellScript(const std::vector<std::string>& commands, FailedCommand failed = FailedCommand::kNamed);

}  // namespace muster
