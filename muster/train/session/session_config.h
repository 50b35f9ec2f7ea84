// How a session computes: on which devices, with how many threads, in touch with which tasks. The words and defaults of
// TensorFlow's ConfigProto (tensorflow/core/protobuf/config.proto), as far as they mean something here; docs/devices.md
// says what each does. A plain value, no thread safety needed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "muster/cluster/task_id.h"

namespace muster {

// Of a task that computes; a ps never touches a GPU, whatever stands here. What libtorch can't do is said in the log,
// once.
struct GpuOptions {
  // TensorFlow takes all of a GPU's memory at once unless this is true. libtorch takes what it needs, when it needs it;
  // `false` can't be had and is only answered in the log.
  std::optional<bool> allow_growth;
  // Of a GPU's memory, what this process may take at most; 0: all.
  double per_process_gpu_memory_fraction = 0;
  // Numbers of the GPUs of this host that the session may use, in this order: with "3,1", cuda:0 is the host's third
  // (counted from 0) and cuda:1 its first. Empty: all, in the host's order.
  std::string visible_device_list;
};

struct SessionConfig {
  // A device that isn't there (--device=cuda:1 on a host with one GPU) is replaced by the CPU, which the log says once.
  // Otherwise the session can't be created, and the error names the devices that there are.
  bool allow_soft_placement = false;
  // Writes a table to the log when the session is created: every variable and module, its task, device and bytes.
  bool log_device_placement = false;
  GpuOptions gpu_options;
  // Threads of one operation, and of operations beside each other (autograd's, torch::jit's). 0: what they are, see
  // NodeOptions::threads. libtorch lets the latter be set once in a process, before the first use.
  int intra_op_parallelism_threads = 0;
  int inter_op_parallelism_threads = 0;
  // The tasks that this one talks to, each "/job:NAME", "/job:NAME/task:N" or another part of a device string; empty:
  // all. The task itself is always among them. A ps that is needed must be, see CheckDeviceFilters.
  std::vector<std::string> device_filters;
};

// InvalidArgument naming the field, its value and what is accepted.
[[nodiscard]] absl::Status CheckSessionConfig(const SessionConfig& config);

// What TensorFlow's Estimators filter by (RunConfig): a worker talks to the ps alone, and so doesn't wait for the other
// workers. Empty for an evaluator and for jobs of other names.
std::vector<std::string> DefaultDeviceFilters(const TaskId& task);

}  // namespace muster
