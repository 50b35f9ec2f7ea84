// TensorFlow's replica_device_setter (tensorflow/python/training/device_setter.py): a device function that puts
// variables on the parameter servers, in turn or by size, and everything else on the worker. The functions made here
// hold counters, which copies of one function share; use a function from one thread at a time.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/cluster/cluster_spec.h"
#include "muster/cluster/placement/device_scope.h"

namespace muster {

// Returns the ps task for the variable: 0 .. ps_tasks-1.
using PsStrategy = std::function<absl::StatusOr<int>(const OpSpec& op)>;
// Returns how much of a server's capacity the variable takes.
using LoadFunction = std::function<absl::StatusOr<double>(const OpSpec& op)>;

// Places the variables in order of creation on 0, 1, …, ps_tasks-1, 0, …
PsStrategy RoundRobinStrategy(int ps_tasks);
// Places each variable on the task with the least load so far, the first of them on a tie
// (tensorflow/contrib/training/python/training/device_setter.py, GreedyLoadBalancingStrategy).
PsStrategy GreedyLoadBalancingStrategy(int ps_tasks, LoadFunction load);
// Returns the bytes of the variable: byte_size_load_fn of the same file.
absl::StatusOr<double> ByteSizeLoad(const OpSpec& op);

// Returns TensorFlow's STANDARD_PS_OPS: "Variable", "VariableV2", "VarHandleOp", …
const std::vector<std::string>& StandardPsOps();

struct ReplicaDeviceSetterOptions {
  int ps_tasks = 0;                           // ignored if `cluster` is set
  std::string ps_device = "/job:ps";          // the task is filled in if an inner scope doesn't choose another job
  std::string worker_device = "/job:worker";  // for everything that isn't in ps_ops
  bool merge_devices = true;                  // false: leave ops alone that an inner scope has placed in any way
  std::optional<ClusterSpec> cluster;         // the number of ps tasks is that of its job named in ps_device
  std::vector<std::string> ps_ops;            // empty: StandardPsOps()
  PsStrategy ps_strategy;                     // empty: RoundRobinStrategy
};

// Returns an empty function if there is no ps task. If ps_device or worker_device isn't a device string, calls of the
// function return InvalidArgument.
DeviceFunction ReplicaDeviceSetter(ReplicaDeviceSetterOptions options);

}  // namespace muster
