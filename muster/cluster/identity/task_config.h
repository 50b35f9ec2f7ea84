// Which task of which cluster this process is, and what follows from that: whether it is the chief, how many workers
// there are, where the parameter servers are. Read from flags, from TF_CONFIG, from what srun or torchrun set
// (role_source.h), or from none of these (one process alone). The rules are those of TensorFlow's Estimator RunConfig,
// with one difference on purpose: in a cluster with neither chief nor master, worker 0 is the chief. A plain value:
// const methods may be called from any thread.
//
// Flags win over TF_CONFIG, in three independent groups. The cluster: if one of --ps_hosts, --worker_hosts,
// --chief_hosts is given, TF_CONFIG's cluster and task are ignored. The task: if --job_name or --task_index is given,
// TF_CONFIG's task is ignored. --model_dir wins over TF_CONFIG's model_dir. An unreadable TF_CONFIG is an error even if
// flags say everything. The index may be left out where the job has one task.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/net/status_address.h"
#include "muster/cluster/cluster_spec.h"
#include "muster/cluster/identity/compute_device.h"
#include "muster/cluster/identity/environment.h"
#include "muster/cluster/identity/role_source.h"
#include "muster/cluster/identity/task_flags.h"
#include "muster/cluster/task_id.h"

namespace muster {

struct TaskConfigInputs {
  std::optional<std::string> tf_config;  // the text of TF_CONFIG; empty is the same as unset
  TaskFlags flags;
  RoleVariables roles = {};
};

class TaskConfig {
 public:
  // A process alone: worker 0, its own chief.
  TaskConfig() = default;

  // Reads the environment and takes the task's flags (task_flags.h) out of argc and argv, leaving the program's own.
  // Writes the notice() to stderr. For main: on a mistake it writes one line to stderr and exits with 2, before
  // anything is started.
  static TaskConfig FromCommandLine(int& argc, char** argv);
  // Does the same for a program that has no flags of its own: --help shows the task's flags and exits with 0, and any
  // other argument is a mistake.
  static TaskConfig FromWholeCommandLine(int& argc, char** argv);
  // Does the same but returns the error; `arguments` are without the program's name.
  static absl::StatusOr<TaskConfig> FromArguments(std::vector<std::string>& arguments, const Environment& environment);

  // {} if there is no cluster, and for an evaluator, which is never part of the training cluster.
  const ClusterSpec& cluster() const { return cluster_; }
  const TaskId& task() const { return task_; }
  // Empty if not given.
  const std::string& model_dir() const { return model_dir_; }

  // The device from --device; CPU if not given. Also set, but unused, on a ps.
  const ComputeDevice& device() const { return device_; }

  // The part of a trace that this task must write (docs/observe.md); empty if none.
  std::string trace_part() const;
  // Where to serve the status page; nullopt: nowhere.
  const std::optional<StatusAddress>& status_address() const { return status_address_; }

  // On a ps: LeaseOptions::stall_limit (store/gates/client_table.h); nullopt: not given.
  const std::optional<absl::Duration>& stall_limit() const { return stall_limit_; }
  // How long the ps may be out of reach before this task has joined: where tasks start minutes apart, longer than
  // later. nullopt: not given.
  const std::optional<absl::Duration>& join_timeout() const { return join_timeout_; }
  // On a ps: StoreOptions::linger; nullopt: not given.
  const std::optional<absl::Duration>& linger() const { return linger_; }
  // Whether SIGTERM is no end of training, as something starts the task again: a drained node, say. A worker that gets
  // it ends with exit code 138, a chief after a last checkpoint, without telling the ps that it is done.
  bool leaves_on_signal() const { return leaves_on_signal_; }

  bool is_chief() const { return task_ == chief_; }
  bool is_ps() const { return task_.job == kPsJob; }
  bool is_evaluator() const { return task_.job == kEvaluatorJob; }
  // The task that initialises, saves and restores: chief:0, master:0 or worker:0. Set for an evaluator, too, though it
  // can't reach the chief.
  const TaskId& chief() const { return chief_; }

  // 0 without a cluster and for an evaluator.
  int num_ps() const;
  // The number of tasks that train, including the chief: 1 without a cluster, 0 for an evaluator.
  int num_workers() const;
  // The chief is 0, then the other jobs follow by name, ps last; -1 for an evaluator, which has no id.
  int global_id() const;
  // The task's own address; empty for a process alone and for an evaluator.
  std::string master() const;
  // One line for the log: "worker:1 at b:2, in a cluster of ps:0, worker:0-1; the chief is worker:0".
  std::string Summary() const;
  // One line about where the role comes from, if it isn't from flags or TF_CONFIG, or if several sources say something;
  // else empty. FromCommandLine shows it on stderr; who calls FromArguments shows it itself.
  const std::string& notice() const { return notice_; }
  // Returns the status, with the way out if a port is in use that was computed from a job's number.
  absl::Status ExplainBusyPort(absl::Status status) const;
  // For people: the task, then every task of the cluster on a line with its address, the own one marked by *.
  std::string Definition() const;
  // True if several processes train together, so that the task has a server. False for an evaluator.
  bool distributed() const;
  // In order of the index; empty if there is no ps.
  std::vector<std::string> ps_addresses() const;
  // The tasks that train: the chief first, then the workers in order of the index.
  std::vector<TaskId> worker_tasks() const;

  bool operator==(const TaskConfig&) const = default;

 private:
  friend absl::StatusOr<TaskConfig> ResolveTaskConfig(const TaskConfigInputs& inputs);

  ClusterSpec cluster_;
  TaskId task_{kWorkerJob, 0};
  TaskId chief_{kWorkerJob, 0};
  std::string model_dir_;
  ComputeDevice device_;
  std::string trace_;
  std::optional<StatusAddress> status_address_;
  std::optional<absl::Duration> stall_limit_;
  std::optional<absl::Duration> join_timeout_;
  std::optional<absl::Duration> linger_;
  bool leaves_on_signal_ = false;
  std::string notice_;
  int first_port_ = 0;  // where the ports of the tasks begin, if they were computed
};

// Returns the file of a task's part of the trace `trace`: "run.json.worker-0".
std::string TracePartOf(const std::string& trace, const TaskId& task);

// InvalidArgument names the key or flag, its value and what is accepted. Pure.
absl::StatusOr<TaskConfig> ResolveTaskConfig(const TaskConfigInputs& inputs);

}  // namespace muster
