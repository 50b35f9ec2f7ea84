#include "muster/launch/jobs/job_resources.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/launch/experiment/experiment_plan.h"
#include "muster/launch/hosts/placement.h"

namespace muster {
namespace {

// What the supervisor and a node's agent need themselves, which counts as the job's.
constexpr int64_t kOwnBytes = int64_t{64} << 20;
constexpr int64_t kMebibyte = int64_t{1} << 20;
// Signals are late by up to a minute at sites that look rarely; a checkpoint takes its time, too.
constexpr absl::Duration kReserve = absl::Seconds(30);

// What sbatch takes.
constexpr absl::Duration kMostNotice = absl::Seconds(65535);

struct NodeNeeds {
  double cpus = 0;
  int64_t mem_bytes = 0;
  int gpus = 0;
};

}  // namespace

int NodesAskedFor(const SlurmSetting& setting) {
  const auto option = setting.options.find("nodes");
  if (option == setting.options.end() || !option->second.has_value()) return 1;
  // "2", or "2-4", of which Slurm may give the least.
  int nodes = 0;
  const std::string least = option->second->substr(0, option->second->find('-'));
  return absl::SimpleAtoi(least, &nodes) ? std::clamp(nodes, 1, 100000) : 1;
}

absl::StatusOr<SbatchOptions> ResourcesOfJob(const ExperimentFile& file, const SubmitOptions& options, int nodes) {
  PlacementRequest request;
  for (int i = 0; i < nodes; ++i) request.hosts.push_back({.name = absl::StrCat("node", i + 1)});
  const std::vector<TaskId> tasks = TasksOfFile(file);
  for (const TaskId& task : tasks) request.tasks.push_back({.task = task});
  ASSIGN_OR_RETURN(const auto placement, PlaceOnHosts(request));
  std::map<std::string, NodeNeeds> needs;
  bool states_cpus = false;
  bool states_mem = false;
  for (const TaskId& task : tasks) {
    const Resources& stated = RoleOfTask(file, task).resources;
    NodeNeeds& node = needs[placement.at(task)];
    node.cpus += stated.cpus.value_or(0);
    node.mem_bytes += stated.mem_bytes.value_or(0);
    node.gpus += options.no_gpus ? 0 : stated.gpus.value_or(0);
    states_cpus |= stated.cpus.has_value();
    states_mem |= stated.mem_bytes.has_value();
  }
  NodeNeeds most;
  for (const auto& [name, node] : needs) {
    most.cpus = std::max(most.cpus, node.cpus);
    most.mem_bytes = std::max(most.mem_bytes, node.mem_bytes);
    most.gpus = std::max(most.gpus, node.gpus);
  }
  SbatchOptions result;
  if (states_cpus) {
    result["ntasks-per-node"] = "1";
    result["cpus-per-task"] = absl::StrCat(static_cast<int64_t>(std::max(1.0, std::ceil(most.cpus))));
  }
  if (states_mem) result["mem"] = absl::StrCat((most.mem_bytes + kOwnBytes + kMebibyte - 1) / kMebibyte, "M");
  if (most.gpus > 0) result["gres"] = absl::StrCat("gpu:", most.gpus);
  return result;
}

absl::Duration NoticeBeforeEnd(const SubmitOptions& options, double ending_seconds) {
  const absl::Duration may_take = absl::Seconds(options.stop_grace_seconds);
  const absl::Duration takes = ending_seconds > 0 ? std::min(may_take, absl::Seconds(2 * ending_seconds)) : may_take;
  absl::Duration notice = std::min(absl::Ceil(takes + kReserve, absl::Seconds(1)), kMostNotice);
  if (!options.hosts.slurm.has_value()) return notice;
  const auto& asked = options.hosts.slurm->options;
  const auto time = asked.find("time");
  if (time == asked.end() || !time->second.has_value()) return notice;
  const std::optional<absl::Duration> limit = ParseTimeLimit(*time->second);
  return limit.has_value() ? std::min(notice, absl::Floor(*limit / 3, absl::Seconds(1))) : notice;
}

}  // namespace muster
