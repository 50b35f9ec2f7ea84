#include "muster/launch/experiment/experiment_plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "muster/base/check.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/one_line.h"
#include "muster/cluster/cluster_spec.h"
#include "muster/launch/experiment/setup_plan.h"
#include "muster/launch/foreground/cluster_plan.h"
#include "muster/launch/system/missing_library.h"
#include "muster/launch/system/shell_word.h"
#include "muster/launch/system/simple_command.h"

namespace muster {
namespace {

constexpr size_t kMostOfCommand = 80;  // bytes of a command that has failed, in a message

constexpr char kPlanShell[] = "/bin/sh";

using PlanVariables = std::vector<std::pair<std::string, std::string>>;

void AddPlanTasks(std::vector<TaskId>& tasks, const char* job, int count) {
  for (int i = 0; i < count; ++i) tasks.push_back({job, i});
}

// Returns torchrun's variables (docs/experiments/tasks.md lists them); none without torchrun.
PlanVariables TorchrunVariables(const ExperimentFile& file, const ExperimentPlanRequest& request, int rank) {
  if (!file.torchrun.has_value()) return {};
  const TorchrunSpec& torchrun = *file.torchrun;
  const std::string& address = request.addresses.front();
  const size_t colon = address.rfind(':');
  const int world = torchrun.workers.count * torchrun.processes;
  return {{"RANK", absl::StrCat(rank)},
          {"LOCAL_RANK", absl::StrCat(rank % torchrun.processes)},
          {"WORLD_SIZE", absl::StrCat(world)},
          {"LOCAL_WORLD_SIZE", absl::StrCat(torchrun.processes)},
          {"GROUP_RANK", absl::StrCat(rank / torchrun.processes)},
          {"GROUP_WORLD_SIZE", absl::StrCat(torchrun.workers.count)},
          {"ROLE_NAME", "default"},
          {"ROLE_RANK", absl::StrCat(rank)},
          {"ROLE_WORLD_SIZE", absl::StrCat(world)},
          {"MASTER_ADDR", address.substr(0, colon)},
          {"MASTER_PORT", address.substr(colon + 1)},
          {"TORCHELASTIC_RUN_ID", request.id.ToString()},
          {"TORCHELASTIC_RESTART_COUNT", "0"},
          {"TORCHELASTIC_MAX_RESTARTS", "0"}};
}

// Returns how many processes of torchrun share the host of one of them, if the file doesn't say how many processors
// each has; otherwise 1.
int SharersOf(const ExperimentFile& file, const ExperimentPlanRequest& request, const TaskId& task) {
  if (!file.torchrun.has_value() || file.torchrun->workers.resources.cpus.has_value()) return 1;
  const auto host_of = [&request](const TaskId& one) {
    const auto placed = request.placement.find(one);
    return placed == request.placement.end() ? std::string() : placed->second;
  };
  const std::vector<TaskId> tasks = TasksOfFile(file);
  return static_cast<int>(
      std::count_if(tasks.begin(), tasks.end(), [&](const TaskId& other) { return host_of(other) == host_of(task); }));
}

absl::Status CheckPlanVariable(const std::string& key, const std::string& variable, bool torchrun) {
  if (!IsExperimentVariable(variable, torchrun)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(key, ": the variable ", variable, " is set by muster itself; accepted: another name"));
}

// Returns the variables of all tasks. Later ones win.
absl::StatusOr<PlanVariables> SharedPlanVariables(const ExperimentFile& file, const ExperimentPlanRequest& request) {
  PlanVariables variables = {{"PYTHONUNBUFFERED", "1"}};
  std::string search_path = request.search_path;
  const bool torchrun = file.torchrun.has_value();
  for (const auto& [name, value] : request.parameters) {
    const std::string variable = EnvironmentNameOf(name);
    const std::string key = absl::StrCat("train.parameters.", name);
    RETURN_IF_ERROR(CheckPlanVariable(key, variable, torchrun));
    if (variable == "PATH")
      return absl::InvalidArgumentError(
          absl::StrCat(key, ": as a variable it would overwrite PATH; accepted: another name"));
    variables.emplace_back(variable, value);
  }
  for (const auto& [name, value] : file.env) {
    RETURN_IF_ERROR(CheckPlanVariable(absl::StrCat("train.env.", name), name, torchrun));
    if (name == "PATH") search_path = value;
    variables.emplace_back(name, value);
  }
  const std::string id = request.id.ToString();
  variables.emplace_back("OUTPUT_DIR", request.output_dir);
  variables.emplace_back("EXPERIMENT_ID", id);
  variables.emplace_back("JOB_NAME", absl::StrCat(file.project, "-", id));
  variables.emplace_back("PROJECT", file.project);
  variables.emplace_back(kJobTokenVariable, request.job_token);
  variables.emplace_back(kRunIdVariable, request.run_id);
  if (!request.environment_folder.empty()) {
    variables.emplace_back("VIRTUAL_ENV", request.environment_folder);
    variables.emplace_back(
        "PATH", absl::StrCat(request.environment_folder, "/bin", search_path.empty() ? "" : ":", search_path));
  }
  return variables;
}

// Returns what TF_CONFIG calls a task. Beside an evaluator the master is the chief: TensorFlow's RunConfig, and
// muster's, know an evaluator only there.
TaskId NamedInTfConfig(const ExperimentFile& file, const TaskId& task) {
  const bool is_chief = task.job == kMasterJob && file.distributed.has_value() && file.distributed->evaluator.count > 0;
  return is_chief ? TaskId{kChiefJob, task.index} : task;
}

// Writes TF_CONFIG as TensorFlow 1.x reads it: the task counts from 0, "cloud" makes a master the chief, and the
// evaluator isn't part of the cluster.
std::string PlanTfConfig(const std::string& cluster, const TaskId& task) {
  return TfConfigText(cluster, {{"environment", "cloud"}, {"task", {{"type", task.job}, {"index", task.index}}}});
}

absl::StatusOr<std::vector<std::string>> FilledCommands(const ExperimentFile& file, const ParameterValues& parameters) {
  MUSTER_CHECK(file.run_places.size() == file.run.size());
  std::vector<std::string> commands;
  std::vector<std::string> mistakes;
  for (size_t i = 0; i < file.run.size(); ++i) {
    auto filled = FillTemplate(file.run[i], parameters);
    if (filled.ok()) {
      commands.push_back(*std::move(filled));
      continue;
    }
    const std::vector<std::string> lines = absl::StrSplit(filled.status().message(), '\n');
    for (const std::string& line : lines) mistakes.push_back(absl::StrCat(file.run_places[i], ": ", line));
  }
  if (mistakes.empty()) return commands;
  return absl::InvalidArgumentError(absl::StrJoin(mistakes, "\n"));
}

// Returns a task's resources. A torchrun worker's are divided by its processes, because each is limited by itself.
Resources ResourcesOfTask(const ExperimentFile& file, const TaskId& task, bool no_gpus) {
  Resources resources = RoleOfTask(file, task).resources;
  if (no_gpus) resources.gpus = 0;
  if (!file.torchrun.has_value()) return resources;
  const int processes = file.torchrun->processes;
  if (resources.cpus.has_value()) *resources.cpus /= processes;
  if (resources.mem_bytes.has_value()) *resources.mem_bytes /= processes;
  return resources;
}

// Returns the first task of each group that has GPUs.
std::vector<const PlannedTask*> GpuGroups(const ExperimentPlan& plan) {
  std::map<int, const PlannedTask*> groups;
  for (const PlannedTask& task : plan.tasks)
    if (task.resources.gpus.value_or(0) > 0) groups.try_emplace(task.gpu_group, &task);
  std::vector<const PlannedTask*> first;
  for (const auto& [group, task] : groups) first.push_back(task);
  return first;
}

void SetDevices(ExperimentPlan& plan, std::map<int, std::string>& devices, bool no_gpus) {
  if (devices.empty() && !no_gpus) return;
  for (PlannedTask& task : plan.tasks) task.process.environment.emplace_back(kDevicesVariable, devices[task.gpu_group]);
}

// Adds the values to which the filled-in commands refer.
void AddReferredValues(const std::vector<std::string>& commands, const ParameterValues& parameters,
                       PlanVariables& variables) {
  for (const auto& [name, value] : parameters) {
    const std::string variable = ValueVariableOf(name);
    const std::string reference = absl::StrCat("${", variable, "}");
    const bool referred = std::any_of(commands.begin(), commands.end(), [&reference](const std::string& command) {
      return command.find(reference) != std::string::npos;
    });
    if (referred) variables.emplace_back(variable, value);
  }
}

// Returns "2,3" for two from number 2.
std::string GpusFrom(int first, int count) {
  std::vector<int> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  return absl::StrJoin(numbers, ",");
}

}  // namespace

std::vector<TaskId> TasksOfFile(const ExperimentFile& file) {
  std::vector<TaskId> tasks;
  if (file.torchrun.has_value()) {
    AddPlanTasks(tasks, kWorkerJob, file.torchrun->workers.count * file.torchrun->processes);
  } else if (file.distributed.has_value()) {
    AddPlanTasks(tasks, kPsJob, file.distributed->ps.count);
    AddPlanTasks(tasks, kMasterJob, file.distributed->master.count);
    AddPlanTasks(tasks, kWorkerJob, file.distributed->workers.count);
    AddPlanTasks(tasks, kEvaluatorJob, file.distributed->evaluator.count);
  } else {
    AddPlanTasks(tasks, kMasterJob, 1);
  }
  return tasks;
}

TaskId ChiefOfFile(const ExperimentFile& file) {
  return file.torchrun.has_value() ? TaskId{kWorkerJob, 0} : TaskId{kMasterJob, 0};
}

bool HasServer(const ExperimentFile& file, const TaskId& task) {
  if (file.torchrun.has_value()) return task.index == 0;
  return file.distributed.has_value() && task.job != kEvaluatorJob;
}

int AddressesNeeded(const ExperimentFile& file) {
  const std::vector<TaskId> tasks = TasksOfFile(file);
  return static_cast<int>(
      std::count_if(tasks.begin(), tasks.end(), [&](const TaskId& task) { return HasServer(file, task); }));
}

RoleSpec RoleOfTask(const ExperimentFile& file, const TaskId& task) {
  if (file.torchrun.has_value()) return file.torchrun->workers;
  if (!file.distributed.has_value())
    return {.count = 1, .resources = file.resources, .restart = file.restart, .resources_place = file.resources_place};
  const DistributedSpec& distributed = *file.distributed;
  if (task.job == kPsJob) return distributed.ps;
  if (task.job == kMasterJob) return distributed.master;
  return task.job == kEvaluatorJob ? distributed.evaluator : distributed.workers;
}

std::string OutputFolder(const ExperimentFile& file, const Home& home, const ExperimentId& id, bool grid) {
  if (file.output.empty()) return grid ? absl::StrCat(home.folder(id), "/runs") : home.output(id);
  const std::string folder = JoinPath(file.output, absl::StrCat(id.number));
  return id.run == 0 ? folder : absl::StrCat(folder, "/", id.run);
}

absl::StatusOr<ExperimentPlan> PlanExperiment(const ExperimentFile& file, const ExperimentPlanRequest& request) {
  const std::vector<TaskId> tasks = TasksOfFile(file);
  MUSTER_CHECK(request.addresses.size() == static_cast<size_t>(AddressesNeeded(file)));
  MUSTER_CHECK(request.status_ports.empty() || request.status_ports.size() == tasks.size());
  ASSIGN_OR_RETURN(PlanVariables shared, SharedPlanVariables(file, request));
  ASSIGN_OR_RETURN(const std::vector<std::string> commands, FilledCommands(file, request.parameters));
  AddReferredValues(commands, request.parameters, shared);
  const std::vector<std::string> program = {kPlanShell, "-c",
                                            SetupVariableLines(request.setup_key) + ShellScript(commands)};

  ClusterSpec cluster;
  ExperimentPlan plan;
  plan.chief = ChiefOfFile(file);
  size_t servers = 0;
  for (size_t i = 0; i < tasks.size(); ++i) {
    PlannedTask planned;
    planned.process.task = tasks[i];
    if (HasServer(file, tasks[i])) planned.process.address = request.addresses[servers++];
    if (file.distributed.has_value() && !planned.process.address.empty())
      RETURN_IF_ERROR(cluster.AddTask(NamedInTfConfig(file, tasks[i]), planned.process.address));
    const bool muster_ps = file.framework == Framework::kMuster && tasks[i].job == kPsJob;
    planned.process.arguments = muster_ps ? std::vector<std::string>{request.muster_command, "ps"} : program;
    planned.resources = ResourcesOfTask(file, tasks[i], request.no_gpus);
    if (planned.resources.cpus.has_value() && !request.has_threads)
      planned.process.environment = {{kThreadsVariable, absl::StrCat(std::ceil(*planned.resources.cpus))}};
    planned.process.environment.insert(planned.process.environment.end(), shared.begin(), shared.end());
    if (!request.status_ports.empty())
      planned.process.environment.emplace_back(kStatusPortVariable, absl::StrCat(request.status_ports[i]));
    planned.process.directory = request.work_folder;
    planned.process.limits = {.cpus = planned.resources.cpus, .mem_bytes = planned.resources.mem_bytes};
    for (const VolumeSpec& volume : file.volumes)
      planned.process.mounts.push_back({.host = volume.host, .path = volume.path, .writable = volume.writable});
    planned.restart = RoleOfTask(file, tasks[i]).restart;
    planned.gpu_group = file.torchrun.has_value() ? tasks[i].index / file.torchrun->processes : static_cast<int>(i);
    plan.tasks.push_back(std::move(planned));
  }
  const std::string cluster_text = cluster.ToJson();
  for (PlannedTask& planned : plan.tasks) {
    PlanVariables& variables = planned.process.environment;
    if (file.distributed.has_value())
      variables.emplace_back(kTfConfigVariable,
                             PlanTfConfig(cluster_text, NamedInTfConfig(file, planned.process.task)));
    for (auto& variable : TorchrunVariables(file, request, planned.process.task.index))
      variables.push_back(std::move(variable));
    if (const int sharers = SharersOf(file, request, planned.process.task); sharers > 1)
      variables.emplace_back(kSharersVariable, absl::StrCat(sharers));
  }
  return plan;
}

absl::Status CheckCommands(const ExperimentFile& file, const std::vector<ParameterValues>& runs) {
  for (const ParameterValues& run : runs) RETURN_IF_ERROR(FilledCommands(file, run).status());
  return absl::OkStatus();
}

int GpusNeeded(const ExperimentPlan& plan) {
  int gpus = 0;
  for (const PlannedTask* task : GpuGroups(plan)) gpus += *task->resources.gpus;
  return gpus;
}

void GiveGpus(ExperimentPlan& plan, const std::vector<int>& gpus, bool no_gpus) {
  MUSTER_CHECK(gpus.size() == static_cast<size_t>(GpusNeeded(plan)));
  std::map<int, std::string> devices;
  auto next = gpus.begin();
  for (const PlannedTask* task : GpuGroups(plan)) {
    const auto end = next + *task->resources.gpus;
    devices[task->gpu_group] = absl::StrJoin(next, end, ",");
    next = end;
  }
  SetDevices(plan, devices, no_gpus);
}

void GiveGpusOnHosts(ExperimentPlan& plan, const std::map<TaskId, std::string>& placement, bool no_gpus) {
  std::map<int, std::string> devices;
  std::map<std::string, int> given;  // on each host
  for (const PlannedTask* task : GpuGroups(plan)) {
    int& next = given[placement.at(task->process.task)];
    devices[task->gpu_group] = GpusFrom(next, *task->resources.gpus);
    next += *task->resources.gpus;
  }
  SetDevices(plan, devices, no_gpus);
}

void GiveGpusAgain(ExperimentPlan& plan, const ExperimentPlan& before, const TaskId& moved, bool no_gpus) {
  std::map<TaskId, std::string> had;
  for (const PlannedTask& task : before.tasks) had[task.process.task] = VisibleGpus(task);
  std::map<int, std::string> devices;
  for (const PlannedTask* task : GpuGroups(plan))
    devices[task->gpu_group] =
        task->process.task == moved ? GpusFrom(0, *task->resources.gpus) : had.at(task->process.task);
  SetDevices(plan, devices, no_gpus);
}

std::string VisibleGpus(const PlannedTask& task) {
  std::string gpus;
  for (const auto& [name, value] : task.process.environment)
    if (name == kDevicesVariable) gpus = value;
  return gpus;
}

std::string WhatTheShellMeant(const ExitStatus& status, const std::deque<std::string>& last_lines,
                              const std::string& host) {
  if (std::string library = MissingLibraryText(status, last_lines, host); !library.empty()) return library;
  if (status.signal == 0 && status.code == 127) return " (a program of its command was not found)";
  if (status.signal == 0 && status.code == 126) return " (a program of its command can't be executed)";
  return "";
}

// SIGTERM reaches the whole process group. A shell runs its trap only when the program that it waits for has ended, in
// its own way (it may want to save a checkpoint). The trap then waits for background programs, too, and exits with that
// program's code, whatever follows it in the command; with 143 instead of 0, since the command didn't come to its end:
// a loop of the shell itself, for example, has 0 there. `eval` keeps a syntax error in one command from affecting the
// lines after it. (A program that the shell starts at the very moment of the signal doesn't get it, and is killed when
// its time is over.)
//
// The shell becomes the command if there is only one, and that is one program (`exec`): the program is then the task's
// own process, which dies with the supervisor (PR_SET_PDEATHSIG), and whose signal is seen as such. After other
// commands the last one may be a function of theirs, or they may have set a trap. (`exit` in a command ends the script
// without a word of which one it was, as an EXIT trap might be the commands' own.)
std::string ShellScript(const std::vector<std::string>& commands, FailedCommand failed) {
  if (commands.empty()) return "";
  if (commands.size() == 1 && IsSimpleCommand(commands[0]))
    return absl::StrCat("exec ", std::string(absl::StripLeadingAsciiWhitespace(commands[0])), "\n");
  std::string script =
      "trap 'muster_code=$?; wait; [ $muster_code -ne 0 ] || muster_code=143; exit $muster_code' TERM\n";
  const bool says = commands.size() > 1 && failed == FailedCommand::kNamed;
  for (size_t i = 0; i < commands.size(); ++i) {
    const std::string what = absl::StrCat("muster: command ", i + 1, " of ", commands.size(), ", `",
                                          OneLine(commands[i], kMostOfCommand), "`, exited with");
    absl::StrAppend(&script, "eval ", QuotedWord(commands[i]), "\nmuster_code=$?\n[ $muster_code -eq 0 ] || ",
                    says ? absl::StrCat("{ printf '%s %s\\n' ", QuotedWord(what), " $muster_code >&2; ") : "",
                    "exit $muster_code", says ? "; }" : "", "\n");
  }
  return script;
}

}  // namespace muster
