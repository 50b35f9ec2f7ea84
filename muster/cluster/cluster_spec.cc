#include "muster/cluster/cluster_spec.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/address.h"
#include "muster/cluster/json_text.h"
#include "muster/cluster/quoted.h"

namespace muster {
namespace {

absl::Status Below(const std::string& key, const absl::Status& status) {
  return status.ok() ? status : absl::Status(status.code(), absl::StrCat(key, ": ", status.message()));
}

absl::Status AddJson(ClusterSpec& spec, const TaskId& task, const nlohmann::json& value, const std::string& key) {
  if (!value.is_string()) {
    return absl::InvalidArgumentError(
        absl::StrCat(key, ": ", DescribeJson(value), " is not an address; accepted: a string \"host:port\""));
  }
  return Below(key, spec.AddTask(task, value.get_ref<const std::string&>()));
}

}  // namespace

absl::StatusOr<ClusterSpec> ClusterSpec::FromJson(std::string_view text) {
  ASSIGN_OR_RETURN(nlohmann::json json, ParseJson(text, "the cluster"));
  return FromJson(json, "cluster");
}

absl::StatusOr<ClusterSpec> ClusterSpec::FromJson(const nlohmann::json& json, std::string_view key) {
  std::string where(key);
  if (!json.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": ", DescribeJson(json), " is not a cluster; accepted: {\"job\": [\"host:port\", …], …}"));
  }
  ClusterSpec spec;
  for (const auto& [job, tasks] : json.items()) {
    std::string job_key = absl::StrCat(where, ".", job);
    RETURN_IF_ERROR(Below(where, spec.AddJob(job)));
    if (tasks.is_array()) {
      for (size_t i = 0; i < tasks.size(); ++i) {
        RETURN_IF_ERROR(AddJson(spec, {job, static_cast<int>(i)}, tasks[i], absl::StrCat(job_key, "[", i, "]")));
      }
    } else if (tasks.is_object()) {
      for (const auto& [index_text, address] : tasks.items()) {
        absl::StatusOr<int> index = ParseTaskIndex(index_text);
        if (!index.ok()) return Below(job_key, index.status());
        RETURN_IF_ERROR(AddJson(spec, {job, *index}, address, absl::StrCat(job_key, "[", *index, "]")));
      }
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat(job_key, ": ", DescribeJson(tasks),
                       " is not a list of tasks; accepted: [\"host:port\", …] or {\"index\": \"host:port\", …}"));
    }
  }
  return spec;
}

absl::StatusOr<ClusterSpec> ClusterSpec::FromLists(const std::map<std::string, std::vector<std::string>>& jobs) {
  ClusterSpec spec;
  for (const auto& [job, addresses] : jobs) {
    RETURN_IF_ERROR(spec.AddJob(job));
    for (size_t i = 0; i < addresses.size(); ++i) {
      RETURN_IF_ERROR(Below(absl::StrCat(job, "[", i, "]"), spec.AddTask({job, static_cast<int>(i)}, addresses[i])));
    }
  }
  return spec;
}

std::string ClusterSpec::ToJson() const {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [job, tasks] : jobs_) {
    nlohmann::ordered_json& entry = json[job];
    bool dense = !tasks.empty() && index_limit(job) == static_cast<int>(tasks.size());
    entry = dense ? nlohmann::ordered_json::array() : nlohmann::ordered_json::object();
    for (const auto& [index, address] : tasks) {
      if (dense) {
        entry.push_back(address);
      } else {
        entry[std::to_string(index)] = address;
      }
    }
  }
  return json.dump();
}

absl::Status ClusterSpec::AddJob(const std::string& job) {
  RETURN_IF_ERROR(ValidateJobName(job));
  jobs_.try_emplace(job);
  return absl::OkStatus();
}

absl::Status ClusterSpec::AddTask(const TaskId& task, const std::string& address) {
  RETURN_IF_ERROR(ValidateJobName(task.job));
  if (task.index < 0 || task.index > kMaxTaskIndex) {
    return absl::InvalidArgumentError(
        absl::StrCat("task index ", task.index, " is out of range; accepted: 0 to ", kMaxTaskIndex));
  }
  ASSIGN_OR_RETURN(HostPort parsed, ParseHostPort(address));
  if (HasTask(task)) {
    return absl::InvalidArgumentError(absl::StrCat("task ", task.ToString(), " is there twice, the second time at ",
                                                   Quoted(address), "; accepted: each index once"));
  }
  auto [owner, is_new] = owner_of_address_.try_emplace(parsed.ToString(), task);
  if (!is_new) {
    return absl::InvalidArgumentError(absl::StrCat("address ", Quoted(address), " of ", task.ToString(), " is that of ",
                                                   owner->second.ToString(),
                                                   " too; accepted: an address of its own for each task"));
  }
  jobs_[task.job].emplace(task.index, address);
  return absl::OkStatus();
}

std::vector<std::string> ClusterSpec::jobs() const {
  std::vector<std::string> names;
  for (const auto& [job, tasks] : jobs_) names.push_back(job);
  return names;
}

bool ClusterSpec::HasJob(std::string_view job) const { return jobs_.find(job) != jobs_.end(); }

bool ClusterSpec::HasTask(const TaskId& task) const { return tasks(task.job).count(task.index) > 0; }

int ClusterSpec::num_tasks(std::string_view job) const { return static_cast<int>(tasks(job).size()); }

int ClusterSpec::num_tasks() const { return static_cast<int>(owner_of_address_.size()); }

int ClusterSpec::index_limit(std::string_view job) const {
  const Tasks& known = tasks(job);
  return known.empty() ? 0 : known.rbegin()->first + 1;
}

const ClusterSpec::Tasks& ClusterSpec::tasks(std::string_view job) const {
  static const Tasks none;
  auto found = jobs_.find(job);
  return found == jobs_.end() ? none : found->second;
}

absl::StatusOr<std::string> ClusterSpec::TaskAddress(const TaskId& task) const {
  const Tasks& known = tasks(task.job);
  auto found = known.find(task.index);
  if (found == known.end()) {
    return absl::NotFoundError(absl::StrCat("the cluster has no task ", task.ToString(), "; it has ", Summary()));
  }
  return found->second;
}

absl::StatusOr<std::vector<std::string>> ClusterSpec::DenseList(std::string_view job) const {
  std::vector<std::string> addresses;
  for (const auto& [index, address] : tasks(job)) {
    if (index != static_cast<int>(addresses.size())) {
      return absl::FailedPreconditionError(absl::StrCat("the address of ", std::string(job), ":", addresses.size(),
                                                        " is not known here; the cluster has ", Summary()));
    }
    addresses.push_back(address);
  }
  return addresses;
}

std::vector<TaskId> ClusterSpec::AllTasks() const {
  std::vector<TaskId> all;
  for (const auto& [job, tasks] : jobs_) {
    for (const auto& [index, address] : tasks) all.push_back({job, index});
  }
  return all;
}

std::string ClusterSpec::Summary() const {
  std::vector<std::string> parts;
  for (const auto& [job, tasks] : jobs_) {
    if (tasks.empty()) {
      parts.push_back(absl::StrCat(job, " without tasks"));
    }
    for (auto first = tasks.begin(); first != tasks.end();) {
      auto last = first;
      while (std::next(last) != tasks.end() && std::next(last)->first == last->first + 1) ++last;
      parts.push_back(absl::StrCat(job, ":", first->first));
      if (last != first) absl::StrAppend(&parts.back(), "-", last->first);
      first = std::next(last);
    }
  }
  return parts.empty() ? "no tasks" : absl::StrJoin(parts, ", ");
}

}  // namespace muster
