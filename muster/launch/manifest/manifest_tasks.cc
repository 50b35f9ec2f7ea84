#include "muster/launch/manifest/manifest_tasks.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/quoted.h"
#include "muster/cluster/task_id.h"
#include "muster/launch/experiment/experiment_plan.h"
#include "muster/launch/task/task_environment.h"

namespace muster {
namespace {

using ManifestVariables = std::vector<std::pair<std::string, std::string>>;

constexpr char kMusterInImage[] = "muster";
constexpr char kOutputInContainer[] = "/tmp/output";
constexpr char kMakeOutput[] = "mkdir -p \"$OUTPUT_DIR\" || exit\n";
// Runs the commands that follow it as $1. Kubernetes asks only a container's first process to end: a shell, which would
// wait for the program that it runs. This one tells all.
constexpr char kPassOn[] =
    "trap 'told=1; trap \"\" TERM; kill -TERM 0' TERM\n"
    "/bin/sh -c \"$1\" &\n"
    "wait $!\n"
    "code=$?\n"
    "[ -z \"$told\" ] || { wait $!; code=$?; }\n"
    "exit $code\n";

bool IsTorchrunVariable(const std::string& name) {
  static const std::set<std::string> names = {"RANK",       "LOCAL_RANK",       "WORLD_SIZE",     "LOCAL_WORLD_SIZE",
                                              "GROUP_RANK", "GROUP_WORLD_SIZE", "MASTER_ADDR",    "MASTER_PORT",
                                              "ROLE_NAME",  "ROLE_RANK",        "ROLE_WORLD_SIZE"};
  return names.contains(name) || absl::StartsWith(name, "TORCHELASTIC_");
}

// Returns the variables of a planned task that all tasks of its role have, each once, with the last value.
ManifestVariables CommonVariables(const ExperimentFile& file, const ManifestRequest& request,
                                  const ManifestVariables& planned) {
  ManifestVariables common;
  for (std::pair<std::string, std::string> variable : planned) {
    const std::string& name = variable.first;
    if (name == kTfConfigVariable || name == kJobTokenVariable || name == kRunIdVariable || name == kSharersVariable)
      continue;
    if (file.torchrun.has_value() && IsTorchrunVariable(name)) continue;
    if (name == "EXPERIMENT_ID" || name == "JOB_NAME") variable.second = request.name;
    std::erase_if(common, [&name](const auto& other) { return other.first == name; });
    common.push_back(std::move(variable));
  }
  return common;
}

// Returns the command of a container that runs a plan's shell with its script.
std::vector<std::string> ShellOfPod(const std::vector<std::string>& planned) {
  const std::string& script = planned.back();
  // The program becomes the container's first process, and hears itself.
  if (absl::StartsWith(script, "exec ")) return {planned[0], "-c", absl::StrCat(kMakeOutput, script)};
  return {planned[0], "-c", absl::StrCat(kMakeOutput, kPassOn), "sh", script};
}

std::string ManifestOutput(const ExperimentFile& file, const ManifestRequest& request) {
  if (!file.output.empty()) return JoinPath(file.output, request.name);
  for (const ManifestClaim& claim : request.claims)
    if (!claim.read_only) return JoinPath(claim.path, request.name);
  return kOutputInContainer;
}

bool HasClaimAt(const ManifestRequest& request, const std::string& path) {
  return std::any_of(request.claims.begin(), request.claims.end(),
                     [&](const ManifestClaim& claim) { return claim.path == path; });
}

absl::Status CheckFile(const ExperimentFile& file, const ManifestRequest& request) {
  std::vector<std::string> mistakes;
  for (const VolumeSpec& volume : file.volumes)
    if (!HasClaimAt(request, volume.path))
      mistakes.push_back(absl::StrCat(file.name, ": train.volumes: ", volume.path,
                                      " is a folder of one machine, which pods don't see; accepted: --claim NAME:",
                                      volume.path, ", a PersistentVolumeClaim that has the same files"));
  if (file.torchrun.has_value() && file.torchrun->processes > 1)
    mistakes.push_back(absl::StrCat(file.name, ": train.torchrun.processes: ", file.torchrun->processes,
                                    ", but each container has one; accepted: 1, with more workers, or the program "
                                    "torchrun in train.run"));
  if (mistakes.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(mistakes, "\n"));
}

// Returns what PlanExperiment needs to plan the tasks without a machine.
ExperimentPlanRequest PlanOf(const ExperimentFile& file, const ParameterValues& parameters,
                             const ManifestRequest& request) {
  ExperimentPlanRequest plan;
  plan.id = {.number = 1};
  plan.parameters = parameters;
  plan.output_dir = ManifestOutput(file, request);
  plan.muster_command = kMusterInImage;
  const int addresses = AddressesNeeded(file);
  for (int i = 0; i < addresses; ++i) plan.addresses.push_back(absl::StrCat("127.0.0.1:", 1 + i));
  return plan;
}

TaskNaming NamingOf(const ExperimentFile& file) {
  if (file.torchrun.has_value()) return TaskNaming::kTorchrun;
  return file.distributed.has_value() ? TaskNaming::kTfConfig : TaskNaming::kAlone;
}

// Beside an evaluator the master is the chief, as in TF_CONFIG (PlanExperiment).
std::string RoleNameOf(const ExperimentFile& file, const TaskId& task) {
  const bool is_chief = task.job == kMasterJob && file.distributed.has_value() && file.distributed->evaluator.count > 0;
  return is_chief ? kChiefJob : task.job;
}

void AddRole(ManifestRequest& request, const ClusterRequest& cluster, const char* job, int count,
             const Resources& resources) {
  if (count == 0) return;
  ManifestRole role{.job = job, .count = count, .resources = resources};
  if (cluster.muster_ps && role.job == kPsJob)
    role.command = {kMusterInImage, "ps"};
  else
    role.command = cluster.program;
  if (resources.cpus.has_value())
    role.environment.emplace_back(kThreadsVariable, absl::StrCat(std::ceil(*resources.cpus)));
  for (const std::string& variable : cluster.environment) {
    const size_t equals = variable.find('=');
    const std::string name = variable.substr(0, equals);
    std::erase_if(role.environment, [&](const auto& other) { return other.first == name; });
    role.environment.emplace_back(name, variable.substr(equals + 1));
  }
  request.roles.push_back(std::move(role));
}

}  // namespace

absl::Status TakeFile(const ExperimentFile& file, const ParameterValues& parameters, ManifestRequest& request) {
  RETURN_IF_ERROR(CheckFile(file, request));
  const auto& kubernetes = file.hosts.kubernetes;
  if (request.image.empty()) request.image = kubernetes.image.empty() ? file.image : kubernetes.image;
  if (request.name_space.empty()) request.name_space = kubernetes.name_space;
  ASSIGN_OR_RETURN(const ExperimentPlan plan, PlanExperiment(file, PlanOf(file, parameters, request)));
  request.naming = NamingOf(file);
  for (const PlannedTask& planned : plan.tasks) {
    const std::string job = RoleNameOf(file, planned.process.task);
    if (!request.roles.empty() && request.roles.back().job == job) {
      ++request.roles.back().count;
      continue;
    }
    ManifestRole role{.job = job, .count = 1, .resources = planned.resources, .restart = planned.restart};
    const std::vector<std::string>& arguments = planned.process.arguments;
    role.command = arguments.front() == kMusterInImage ? arguments : ShellOfPod(arguments);
    role.environment = CommonVariables(file, request, planned.process.environment);
    request.roles.push_back(std::move(role));
  }
  return absl::OkStatus();
}

std::vector<std::string> NotesOfFile(const ExperimentFile& file, const ManifestRequest& request) {
  std::vector<std::string> notes;
  if (!file.install.empty())
    notes.push_back(
        absl::StrCat(file.name, ": train.install isn't run in the pods: the image must have what it installs"));
  if (!file.setup.run.empty())
    notes.push_back(
        absl::StrCat(file.name, ": train.setup isn't run in the pods: the image or a claim must have what it makes"));
  if (ManifestOutput(file, request) == kOutputInContainer)
    notes.push_back(absl::StrCat("OUTPUT_DIR is ", kOutputInContainer,
                                 " in each container, gone with its pod; --claim NAME:PATH keeps it"));
  const bool has_ps = file.distributed.has_value() && file.distributed->ps.count > 0;
  if (request.form == ManifestForm::kJob && has_ps && file.framework != Framework::kMuster)
    notes.push_back(
        "plain Jobs don't end a ps: one that never returns from server.join() runs on; --form jobset ends it with "
        "chief and workers");
  return notes;
}

absl::Status TakeCluster(const ClusterRequest& cluster, const Resources& resources, const Resources& of_ps,
                         ManifestRequest& request) {
  RETURN_IF_ERROR(ValidateRequest(cluster));
  request.naming = TaskNaming::kTfConfig;
  request.model_dir = cluster.model_dir;
  AddRole(request, cluster, kPsJob, cluster.ps, of_ps);
  AddRole(request, cluster, kChiefJob, cluster.chiefs, resources);
  AddRole(request, cluster, kWorkerJob, cluster.workers, resources);
  AddRole(request, cluster, kEvaluatorJob, cluster.evaluator ? 1 : 0, resources);
  return absl::OkStatus();
}

absl::StatusOr<Resources> ParseManifestResources(const std::string& flag, const std::string& text) {
  Resources resources;
  const auto wrong = [&](const std::string& part, const std::string& accepted) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " ", Quoted(text), ": ", Quoted(part), "; accepted: ", accepted));
  };
  std::vector<std::string> parts;
  if (!text.empty()) parts = absl::StrSplit(text, ',');
  for (const std::string& part : parts) {
    const size_t equals = std::min(part.find('='), part.size());
    const std::string name = part.substr(0, equals);
    const std::string value = part.substr(std::min(equals + 1, part.size()));
    if (name == "cpus") {
      double cpus = 0;
      if (!absl::SimpleAtod(value, &cpus) || !std::isfinite(cpus) || cpus < 0.001 || cpus > 10'000)
        return wrong(part, "cpus=N, as cpus=2 or cpus=0.5");
      resources.cpus = cpus;
    } else if (name == "mem") {
      const absl::StatusOr<int64_t> bytes = ParseMemory(value, nullptr);
      if (!bytes.ok()) return wrong(part, absl::StrCat("mem=SIZE, ", kMemoryForms));
      resources.mem_bytes = *bytes;
    } else if (name == "gpus") {
      int gpus = 0;
      if (!absl::SimpleAtoi(value, &gpus) || gpus < 0) return wrong(part, "gpus=N, a whole number");
      resources.gpus = gpus;
    } else {
      return wrong(part, "cpus=N,mem=SIZE,gpus=N, or some of them");
    }
  }
  return resources;
}

}  // namespace muster
