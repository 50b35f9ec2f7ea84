// Which task of which cluster this process is, and what follows from that: is it the chief, how many workers are there,
// where are the parameter servers. Read from flags, from TF_CONFIG, or from neither (one process alone). The rules are
// those of TensorFlow's Estimator RunConfig, with one difference on purpose: in a cluster with neither chief nor
// master, worker 0 is the chief. A plain value: const methods may be called from any thread.
//
// Flags win over TF_CONFIG, in three independent groups:
//   the cluster   --ps_hosts, --worker_hosts, --chief_hosts: if one is given, TF_CONFIG's cluster and task are not
//   used; the task      --job_name, --task_index: if one is given, TF_CONFIG's task is not used;
//   --model_dir   over TF_CONFIG's model_dir.
// A TF_CONFIG that is not readable is an error even where flags say everything.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/net/status_address.h"
#include "muster/cluster/cluster_spec.h"
#include "muster/cluster/identity/compute_device.h"
#include "muster/cluster/identity/environment.h"
#include "muster/cluster/identity/task_flags.h"
#include "muster/cluster/task_id.h"

namespace muster {

struct TaskConfigInputs {
  std::optional<std::string> tf_config;  // the text of TF_CONFIG; empty is the same as none
  TaskFlags flags;
};

class TaskConfig {
 public:
  // One process alone: worker 0, its own chief.
  TaskConfig() = default;

  // Reads the environment and takes the task's flags (task_flags.h) out of argc and argv, leaving the program's own.
  // For main: a mistake is written to stderr as one line and the process exits with 2, before anything is started.
  static TaskConfig FromCommandLine(int& argc, char** argv);
  // The same for a program that has no flags of its own: --help shows the task's and exits with 0, and whatever else is
  // left is a mistake.
  static TaskConfig FromWholeCommandLine(int& argc, char** argv);
  // The same for who wants the error; `arguments` are without the program's name.
  static absl::StatusOr<TaskConfig> FromArguments(std::vector<std::string>& arguments, const Environment& environment);

  // {} where there is no cluster, and for an evaluator, which is never part of the training cluster.
  const ClusterSpec& cluster() const { return cluster_; }
  const TaskId& task() const { return task_; }
  // Empty if nobody said.
  const std::string& model_dir() const { return model_dir_; }

  // What --device says; the CPU if nobody said. Of a ps, which has no use for it, too.
  const ComputeDevice& device() const { return device_; }

  // The part of a trace that this task is to write (docs/observe.md); empty: none.
  std::string trace_part() const;
  // Where its status page is to be; nothing: nowhere.
  const std::optional<StatusAddress>& status_address() const { return status_address_; }

  bool is_chief() const { return task_ == chief_; }
  bool is_ps() const { return task_.job == kPsJob; }
  bool is_evaluator() const { return task_.job == kEvaluatorJob; }
  // Who initialises, saves and restores: chief:0, master:0 or worker:0. Of an evaluator too, though it can't reach it.
  const TaskId& chief() const { return chief_; }

  // 0 without a cluster and for an evaluator.
  int num_ps() const;
  // Who trains, counting the chief: 1 without a cluster, 0 for an evaluator.
  int num_workers() const;
  // The chief is 0, then the other jobs by name, ps last; -1 for an evaluator, which has none.
  int global_id() const;
  // The task's own address; empty where one process is all, and for an evaluator.
  std::string master() const;
  // More than one process trains together: the task has a server. False for an evaluator.
  bool distributed() const;
  // In order of the index; empty without ps.
  std::vector<std::string> ps_addresses() const;
  // Who trains, the chief first, then the workers in order of the index.
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
};

// The part of the trace `trace` that a task of a cluster writes: "run.json.worker-0".
std::string TracePartOf(const std::string& trace, const TaskId& task);

// InvalidArgument names the key or flag, its value and what is accepted. Pure.
absl::StatusOr<TaskConfig> ResolveTaskConfig(const TaskConfigInputs& inputs);

}  // namespace muster
