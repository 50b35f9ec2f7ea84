// How a session computes: on which devices, with how many threads, in contact with which tasks. Keeps the names and
// defaults of TensorFlow's ConfigProto (tensorflow/core/protobuf/config.proto), as far as they mean something here;
// docs/devices.md says what each does. A plain value, no thread safety needed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "muster/cluster/task_id.h"

namespace muster {

// For tasks that compute; a ps never touches a GPU, whatever is set here. The log says once what libtorch can't do.
struct GpuOptions {
  // TensorFlow takes all of a GPU's memory at once unless this is true. libtorch always takes memory as needed; `false`
  // has no effect but a line in the log.
  std::optional<bool> allow_growth;
  // The largest fraction of a GPU's memory that this process may take; 0: all.
  double per_process_gpu_memory_fraction = 0;
  // Numbers of this host's GPUs that the session may use, in this order: with "3,1", cuda:0 is the host's third
  // (counted from 0) and cuda:1 its first. Empty: all, in the host's order.
  std::string visible_device_list;
};

struct SessionConfig {
  // Replaces a missing device (--device=cuda:1 on a host with one GPU) by the CPU, and logs that once. Otherwise the
  // session can't be created, and the error names the existing devices.
  bool allow_soft_placement = false;
  // Logs a table when the session is created: every variable and module, its task, device and bytes.
  bool log_device_placement = false;
  GpuOptions gpu_options;
  // Threads within one operation, and for operations side by side (autograd's, torch::jit's). 0: unchanged, see
  // NodeOptions::threads. libtorch lets the latter be set only once in a process, before the first use.
  int intra_op_parallelism_threads = 0;
  int inter_op_parallelism_threads = 0;
  // The tasks that this one talks to, each "/job:NAME", "/job:NAME/task:N" or another part of a device string; empty:
  // all. The task itself is always among them. A ps that is needed must be listed, see CheckDeviceFilters.
  std::vector<std::string> device_filters;
};

// InvalidArgument naming the field, its value and what is accepted.
[[nodiscard]] absl::Status CheckSessionConfig(const SessionConfig& config);

// The default filters of TensorFlow's Estimators (RunConfig): a worker talks to the ps only, and so doesn't wait for
// the other workers. Empty for an evaluator and for jobs of other names.
std::vector<std::string> DefaultDeviceFilters(const TaskId& task);

}  // namespace muster
