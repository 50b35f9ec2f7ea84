// TensorFlow's replica_device_setter (tensorflow/python/training/device_setter.py): a device function that puts
// variables on the parameter servers, one after another or by size, and everything else on the worker. The functions
// made here hold their counters, shared among copies of one function; use one from one thread at a time.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/cluster/cluster_spec.h"
#include "muster/cluster/placement/device_scope.h"

namespace muster {

// Which ps task the variable goes to: 0 .. ps_tasks-1.
using PsStrategy = std::function<absl::StatusOr<int>(const OpSpec& op)>;
// How much of a server a variable takes.
using LoadFunction = std::function<absl::StatusOr<double>(const OpSpec& op)>;

// The variables in order of creation on 0, 1, …, ps_tasks-1, 0, …
PsStrategy RoundRobinStrategy(int ps_tasks);
// Each variable on the task with the least load so far, the first of them on a tie
// (tensorflow/contrib/training/python/training/device_setter.py, GreedyLoadBalancingStrategy).
PsStrategy GreedyLoadBalancingStrategy(int ps_tasks, LoadFunction load);
// Bytes of the variable: byte_size_load_fn of the same file.
absl::StatusOr<double> ByteSizeLoad(const OpSpec& op);

// "Variable", "VariableV2", "VarHandleOp", … : TensorFlow's STANDARD_PS_OPS.
const std::vector<std::string>& StandardPsOps();

struct ReplicaDeviceSetterOptions {
  int ps_tasks = 0;                           // ignored if there is a cluster
  std::string ps_device = "/job:ps";          // the task is filled in where its job is kept
  std::string worker_device = "/job:worker";  // of everything that isn't in ps_ops
  bool merge_devices = true;                  // false: leave alone what an inner scope has placed at all
  std::optional<ClusterSpec> cluster;         // its job of ps_device's name says how many ps tasks there are
  std::vector<std::string> ps_ops;            // empty: StandardPsOps()
  PsStrategy ps_strategy;                     // empty: RoundRobinStrategy
};

// An empty function if there is no ps task. A ps_device or worker_device that isn't a device string is an
// InvalidArgument from the function's calls.
DeviceFunction ReplicaDeviceSetter(ReplicaDeviceSetterOptions options);

}  // namespace muster
