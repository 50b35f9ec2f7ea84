#include "muster/launch/jobs/job_resources.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/launch/experiment/experiment_plan.h"
#include "muster/launch/hosts/placement.h"

namespace muster {
namespace {

// Signals are late by up to a minute at sites that look rarely; a checkpoint takes its time, too.
constexpr absl::Duration kReserve = absl::Seconds(30);

template <typename T>
void AddStated(const std::optional<T>& stated, std::optional<T>& sum) {
  if (stated.has_value()) sum = sum.value_or(0) + *stated;
}

absl::StatusOr<std::map<TaskId, std::string>> PlaceOnAlike(const std::vector<TaskId>& tasks, int hosts) {
  PlacementRequest request;
  for (int i = 0; i < hosts; ++i) request.hosts.push_back({.name = absl::StrCat("node", i + 1)});
  for (const TaskId& task : tasks) request.tasks.push_back({.task = task});
  return PlaceOnHosts(request);
}

}  // namespace

absl::StatusOr<int> HostsWithoutTask(const ExperimentFile& file, int hosts) {
  ASSIGN_OR_RETURN(const auto placement, PlaceOnAlike(TasksOfFile(file), hosts));
  std::set<std::string> used;
  for (const auto& [task, host] : placement) used.insert(host);
  return hosts - static_cast<int>(used.size());
}

absl::StatusOr<HostNeeds> NeedsOfHosts(const ExperimentFile& file, const SubmitOptions& options, int hosts) {
  const std::vector<TaskId> tasks = TasksOfFile(file);
  ASSIGN_OR_RETURN(const auto placement, PlaceOnAlike(tasks, hosts));
  std::map<std::string, HostNeeds> needs;
  for (const TaskId& task : tasks) {
    const Resources& stated = RoleOfTask(file, task).resources;
    HostNeeds& host = needs[placement.at(task)];
    AddStated(stated.cpus, host.cpus);
    AddStated(stated.mem_bytes, host.mem_bytes);
    host.gpus += options.no_gpus ? 0 : stated.gpus.value_or(0);
  }
  HostNeeds most;
  for (const auto& [name, host] : needs) {
    most.cpus = std::max(most.cpus, host.cpus);  // nullopt is less than any number
    most.mem_bytes = std::max(most.mem_bytes, host.mem_bytes);
    most.gpus = std::max(most.gpus, host.gpus);
  }
  return most;
}

absl::StatusOr<int> LeastHosts(const ExperimentFile& file, const SubmitOptions& options, int hosts) {
  ASSIGN_OR_RETURN(const auto placement, PlaceOnAlike(TasksOfFile(file), hosts));
  const int least = hosts - static_cast<int>(DispensableHosts(placement).size());
  if (least == hosts || least < 1 || !options.hosts.placement.empty()) return hosts;
  ASSIGN_OR_RETURN(const HostNeeds all, NeedsOfHosts(file, options, hosts));
  ASSIGN_OR_RETURN(const HostNeeds fewer, NeedsOfHosts(file, options, least));
  // What is unset is less than any number.
  return fewer.mem_bytes <= all.mem_bytes && fewer.gpus <= all.gpus ? least : hosts;
}

absl::Duration NoticeBeforeEnd(const SubmitOptions& options, const JobTerms& terms, double ending_seconds) {
  const absl::Duration may_take = absl::Seconds(options.stop_grace_seconds);
  const absl::Duration takes = ending_seconds > 0 ? std::min(may_take, absl::Seconds(2 * ending_seconds)) : may_take;
  const absl::Duration notice = absl::Ceil(takes + kReserve, absl::Seconds(1));
  if (!terms.time_limit.has_value()) return notice;
  return std::min(notice, absl::Floor(*terms.time_limit / 3, absl::Seconds(1)));
}

}  // namespace muster
