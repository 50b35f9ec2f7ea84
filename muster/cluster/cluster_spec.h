// Which tasks a cluster has and the address of each: the "cluster" of TF_CONFIG, the meaning of TensorFlow's
// tf.train.ClusterSpec. A job may know only some of its tasks (Kubeflow tells a worker of a growing cluster about
// itself alone), so that its tasks are a map from index to address. A plain value: const methods may be called from any
// thread.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/cluster/task_id.h"

namespace muster {

class ClusterSpec {
 public:
  using Tasks = std::map<int, std::string>;  // index -> address

  ClusterSpec() = default;

  // {"ps": ["host:port", ...], "worker": {"1": "host:port"}}: a list, or an object from index to address.
  // InvalidArgument names the key below `key` ("cluster.ps[1]"), the value and the accepted form.
  static absl::StatusOr<ClusterSpec> FromJson(std::string_view text);
  static absl::StatusOr<ClusterSpec> FromJson(const nlohmann::json& json, std::string_view key);

  // {"ps": "a:1,b:2"}-style building, list by list; the same checks and errors.
  static absl::StatusOr<ClusterSpec> FromLists(const std::map<std::string, std::vector<std::string>>& jobs);

  // One line. A job is a list where its indices are 0 .. n-1, else an object, {} for a job without tasks (as
  // TensorFlow's ClusterSpec.as_dict). FromJson(ToJson()) gives back an equal spec.
  std::string ToJson() const;

  // Declares the job, with no task yet. InvalidArgument for a bad name.
  [[nodiscard]] absl::Status AddJob(const std::string& job);
  // InvalidArgument: a bad job name, a negative index, a task that is there already, an address that isn't one (see
  // address.h) or that another task has (however it is spelled).
  [[nodiscard]] absl::Status AddTask(const TaskId& task, const std::string& address);

  // No jobs at all: there is no cluster.
  bool empty() const { return jobs_.empty(); }
  // Sorted by name.
  std::vector<std::string> jobs() const;
  bool HasJob(std::string_view job) const;
  bool HasTask(const TaskId& task) const;
  // How many tasks of the job are known; 0 for an unknown job.
  int num_tasks(std::string_view job) const;
  // All jobs together.
  int num_tasks() const;
  // One above the highest index known; equal to num_tasks where the job is dense.
  int index_limit(std::string_view job) const;
  // Empty for an unknown job.
  const Tasks& tasks(std::string_view job) const;
  // NotFound naming the task and the tasks that there are.
  absl::StatusOr<std::string> TaskAddress(const TaskId& task) const;
  // The addresses in order of the index, only where the indices are 0 .. n-1. FailedPrecondition naming the missing
  // index.
  absl::StatusOr<std::vector<std::string>> DenseList(std::string_view job) const;
  // Every task, by job, then index.
  std::vector<TaskId> AllTasks() const;
  // "ps:0-1, worker:1": for messages.
  std::string Summary() const;

  bool operator==(const ClusterSpec& other) const { return jobs_ == other.jobs_; }

 private:
  std::map<std::string, Tasks, std::less<>> jobs_;
  std::map<std::string, TaskId> owner_of_address_;  // canonical address -> who has it
};

}  // namespace muster
