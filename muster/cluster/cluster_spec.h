// Which tasks a cluster has, and the address of each: the "cluster" of TF_CONFIG, with the meaning of TensorFlow's
// tf.train.ClusterSpec. A process may know only some tasks of a job (Kubeflow tells a worker of a growing cluster only
// about itself), so a job's tasks are a map from index to address. A plain value: const methods may be called from any
// thread.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
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

  // Reads {"ps": ["host:port", ...], "worker": {"1": "host:port"}}: a list, or an object from index to address.
  // InvalidArgument names the key below `key` ("cluster.ps[1]"), the value and the accepted form.
  static absl::StatusOr<ClusterSpec> FromJson(std::string_view text);
  static absl::StatusOr<ClusterSpec> FromJson(const nlohmann::json& json, std::string_view key);

  // Builds it from one list of addresses per job, {"ps": {"a:1", "b:2"}}, with the same checks and errors.
  static absl::StatusOr<ClusterSpec> FromLists(const std::map<std::string, std::vector<std::string>>& jobs);

  // Writes one line. A job is a list if its indices are 0 .. n-1, otherwise an object; {} is a job without tasks (as in
  // TensorFlow's ClusterSpec.as_dict). FromJson(ToJson()) returns an equal spec.
  std::string ToJson() const;

  // Declares a job without tasks. InvalidArgument for a bad name.
  [[nodiscard]] absl::Status AddJob(const std::string& job);
  // InvalidArgument: a bad job name, a negative index, a task that exists already, or an address that is malformed (see
  // address.h) or belongs to another task (in any spelling).
  [[nodiscard]] absl::Status AddTask(const TaskId& task, const std::string& address);

  // True if there are no jobs at all, that is, no cluster.
  bool empty() const { return jobs_.empty(); }
  // The names of the jobs, sorted.
  std::vector<std::string> jobs() const;
  bool HasJob(std::string_view job) const;
  bool HasTask(const TaskId& task) const;
  // The number of known tasks of the job; 0 for an unknown job.
  int num_tasks(std::string_view job) const;
  // The number of tasks of all jobs together.
  int num_tasks() const;
  // One more than the highest known index; equal to num_tasks if the job is dense.
  int index_limit(std::string_view job) const;
  // Returns an empty map for an unknown job.
  const Tasks& tasks(std::string_view job) const;
  // NotFound names the task, and the tasks that exist.
  absl::StatusOr<std::string> TaskAddress(const TaskId& task) const;
  // Returns the addresses in order of the index if the indices are 0 .. n-1; otherwise FailedPrecondition names the
  // missing index.
  absl::StatusOr<std::vector<std::string>> DenseList(std::string_view job) const;
  // Returns every task, by job, then index.
  std::vector<TaskId> AllTasks() const;
  // Returns "ps:0-1, worker:1", for messages.
  std::string Summary() const;

  bool operator==(const ClusterSpec& other) const { return jobs_ == other.jobs_; }

 private:
  std::map<std::string, Tasks, std::less<>> jobs_;
  std::map<std::string, TaskId> owner_of_address_;  // canonical address -> the task that has it
};

}  // namespace muster
