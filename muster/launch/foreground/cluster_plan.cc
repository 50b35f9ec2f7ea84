#include "muster/launch/foreground/cluster_plan.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/environment_list.h"
#include "muster/cluster/cluster_spec.h"
#include "muster/launch/system/shell_word.h"

namespace muster {
namespace {

// More processes than this on one machine must be a typing error.
constexpr int kMostTasks = 999;

absl::Status CheckCount(const char* flag, int count, int most) {
  if (count >= 0 && count <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(flag, " ", count, ": accepted are 0 to ", most));
}

absl::Status CheckVariable(const std::string& variable) {
  const size_t equals = variable.find('=');
  if (equals == std::string::npos || equals == 0) {
    return absl::InvalidArgumentError(absl::StrCat("--env ", variable, ": accepted are NAME=VALUE and NAME"));
  }
  const std::string name = variable.substr(0, equals);
  if (name == kTfConfigVariable || name == kJobTokenVariable || name == kRunIdVariable || name == kAgentIdVariable) {
    return absl::InvalidArgumentError(absl::StrCat("--env ", name, ": set by muster run itself; accepted are others"));
  }
  return absl::OkStatus();
}

// The tasks of the training cluster: ps, chief, workers.
std::vector<TaskId> TrainingTasks(const ClusterRequest& request) {
  std::vector<TaskId> tasks;
  for (const PlacedTask& placed : request.layout) tasks.push_back(placed.task);
  if (!tasks.empty()) return tasks;
  for (int i = 0; i < request.ps; ++i) tasks.push_back({kPsJob, i});
  for (int i = 0; i < request.chiefs; ++i) tasks.push_back({kChiefJob, i});
  for (int i = 0; i < request.workers; ++i) tasks.push_back({kWorkerJob, i});
  return tasks;
}

std::string TfConfigOf(const std::string& cluster, const TaskId& task, const std::string& model_dir) {
  nlohmann::json rest;
  rest["task"] = {{"type", task.job}, {"index", task.index}};
  if (!model_dir.empty()) rest["model_dir"] = model_dir;
  return TfConfigText(cluster, rest);
}

// Prints 64 hexadecimal digits.
constexpr char kMakeToken[] = "openssl rand -hex 32";

bool IsShellName(const std::string& name) {
  return !absl::ascii_isdigit(static_cast<unsigned char>(name[0])) && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
  });
}

std::string RunIdOf(const ClusterPlan& plan) {
  for (const auto& [name, value] : plan.processes.front().environment)
    if (name == kRunIdVariable) return value;
  return "";
}

// Returns the command lines of one node's tasks. They end with the exit code of a task that failed, if one has;
// `token_file`, if it isn't empty, is removed then. The shell's positional parameters hold the processes' numbers,
// because not every shell splits a variable.
std::string PastedTasks(const ClusterPlan& plan, const std::string& node, const std::string& token_file) {
  std::string text = "set --\n";
  for (const ProcessSpec& process : plan.processes) {
    if (process.node != node) continue;
    absl::StrAppend(&text, "# ", process.task.ToString(), process.task == plan.chief ? " (the chief)" : "", "\n");
    std::string odd;  // a shell can't assign them, such as bash's functions
    for (const auto& [name, value] : process.environment) {
      if (name == kJobTokenVariable || name == kRunIdVariable) continue;
      if (IsShellName(name))
        absl::StrAppend(&text, name, "=", value.empty() ? "" : ShellWord(value), " ");
      else
        absl::StrAppend(&odd, ShellWord(absl::StrCat(name, "=", value)), " ");
    }
    if (!odd.empty()) absl::StrAppend(&text, "env ", odd);
    for (const std::string& argument : process.arguments) absl::StrAppend(&text, ShellWord(argument), " ");
    absl::StrAppend(&text, "& set -- \"$@\" $!\n");
  }
  const std::string remove = token_file.empty() ? "" : absl::StrCat("rm -f ", token_file, "\n");
  return absl::StrCat(text, "code=0; for task in \"$@\"; do wait $task || code=$?; done\n", remove, "(exit $code)\n");
}

}  // namespace

std::string TfConfigText(const std::string& cluster, const nlohmann::json& rest) {
  const std::string others = rest.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return absl::StrCat("{\"cluster\":", cluster, ",", others.substr(1));
}

std::vector<TaskId> TasksOf(const ClusterRequest& request) {
  std::vector<TaskId> tasks = TrainingTasks(request);
  if (request.evaluator) tasks.push_back({kEvaluatorJob, 0});
  return tasks;
}

TaskId ChiefOf(const ClusterRequest& request) {
  if (!request.layout.empty()) return {kMasterJob, 0};
  return {request.chiefs > 0 ? kChiefJob : kWorkerJob, 0};
}

int AddressesNeeded(const ClusterRequest& request) { return static_cast<int>(TrainingTasks(request).size()); }

absl::Status TakeVariables(const std::vector<std::string>& environment, ClusterRequest& request) {
  for (std::string& variable : request.environment) {
    if (variable.empty() || absl::StrContains(variable, '=')) continue;
    const std::optional<std::string> value = FindVariableIn(environment, variable);
    if (!value.has_value())
      return absl::InvalidArgumentError(absl::StrCat("--env ", variable, ": there is no such variable here; accepted: ",
                                                     "the name of one that is exported, or ", variable, "=VALUE"));
    absl::StrAppend(&variable, "=", *value);
  }
  return absl::OkStatus();
}

absl::Status ValidateRequest(const ClusterRequest& request) {
  RETURN_IF_ERROR(CheckCount("--ps", request.ps, kMostTasks));
  RETURN_IF_ERROR(CheckCount("--workers", request.workers, kMostTasks));
  RETURN_IF_ERROR(CheckCount("--chief", request.chiefs, 1));
  if (request.processors.value_or(1) < 1)
    return absl::InvalidArgumentError(absl::StrCat("--processors ", *request.processors, ": accepted are 1 and more"));
  if (request.workers + request.chiefs == 0) {
    return absl::InvalidArgumentError("--workers 0 --chief 0: nobody would train; accepted is at least one of them");
  }
  if (request.program.empty()) {
    return absl::InvalidArgumentError("no program given; accepted: muster run [flags] -- PROGRAM [ARGUMENTS]");
  }
  for (const std::string& variable : request.environment) RETURN_IF_ERROR(CheckVariable(variable));
  return absl::OkStatus();
}

absl::StatusOr<ClusterPlan> PlanCluster(const ClusterRequest& request, const std::vector<std::string>& addresses,
                                        const std::string& job_token, const std::string& run_id) {
  RETURN_IF_ERROR(ValidateRequest(request));
  std::vector<TaskId> tasks = TrainingTasks(request);
  MUSTER_CHECK(addresses.size() == tasks.size());
  ClusterSpec cluster;
  for (size_t i = 0; i < tasks.size(); ++i) RETURN_IF_ERROR(cluster.AddTask(tasks[i], addresses[i]));
  if (request.evaluator) tasks.push_back({kEvaluatorJob, 0});  // after the spec, as it isn't in the cluster

  const std::string cluster_text = cluster.ToJson();
  ClusterPlan plan;
  plan.chief = ChiefOf(request);
  for (size_t i = 0; i < tasks.size(); ++i) {
    ProcessSpec process;
    process.task = tasks[i];
    if (i < addresses.size()) process.address = addresses[i];
    if (const auto host = request.hosts.find(tasks[i]); host != request.hosts.end()) process.node = host->second;
    if (request.muster_ps && tasks[i].job == kPsJob) {
      process.arguments = {request.muster_command, "ps"};
    } else {
      process.arguments = request.program;
      process.directory = request.directory;
    }
    for (const std::string& variable : request.environment) {
      const size_t equals = variable.find('=');
      process.environment.emplace_back(variable.substr(0, equals), variable.substr(equals + 1));
    }
    if (i < request.layout.size()) {
      process.node = request.layout[i].node;
      process.environment.emplace_back(kDevicesVariable,
                                       VisibleDevice(request.layout[i].device, request.visible_devices));
    }
    if (request.processors) process.environment.emplace_back(kProcessorsVariable, absl::StrCat(*request.processors));
    if (!request.output_root.empty()) process.environment.emplace_back(kOutputRootVariable, request.output_root);
    process.environment.emplace_back(kTfConfigVariable, TfConfigOf(cluster_text, tasks[i], request.model_dir));
    process.environment.emplace_back(kJobTokenVariable, job_token);
    process.environment.emplace_back(kRunIdVariable, run_id);
    if (!request.trace_parts.empty()) process.environment.emplace_back(kTraceVariable, request.trace_parts);
    if (!request.status_ports.empty())
      process.environment.emplace_back(kStatusPortVariable, absl::StrCat(request.status_ports[i]));
    plan.processes.push_back(std::move(process));
  }
  return plan;
}

std::string DryRunText(const ClusterPlan& plan) {
  std::vector<std::string> nodes;  // in order
  for (const ProcessSpec& process : plan.processes)
    if (std::find(nodes.begin(), nodes.end(), process.node) == nodes.end()) nodes.push_back(process.node);
  if (nodes.size() == 1)
    return absl::StrCat("# Paste these lines into a shell. The first makes the job's token, unless you have set one.\n",
                        "export MUSTER_JOB_TOKEN=\"${MUSTER_JOB_TOKEN:-$(", kMakeToken, ")}\"\n",
                        PastedTasks(plan, nodes.front(), ""));
  const std::string file = absl::StrCat("~/.muster-token-", RunIdOf(plan));
  std::string text =
      absl::StrCat("# --- first, on ", nodes.front(), ": makes the job's token and copies it to the others\n",
                   "(umask 077 && ", kMakeToken, " > ", file, ")\n");
  for (size_t i = 1; i < nodes.size(); ++i) absl::StrAppend(&text, "scp -p ", file, " ", ShellWord(nodes[i]), ":\n");
  for (const std::string& node : nodes)
    absl::StrAppend(&text, "\n# --- on ", node, ", in the program's folder\nexport MUSTER_JOB_TOKEN=\"$(cat ", file,
                    ")\"\n", PastedTasks(plan, node, file));
  return text;
}

}  // namespace muster
