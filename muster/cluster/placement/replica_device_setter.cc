#include "muster/cluster/placement/replica_device_setter.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/quoted.h"

namespace muster {

PsStrategy RoundRobinStrategy(int ps_tasks) {
  auto next = std::make_shared<int>(0);
  return [ps_tasks, next](const OpSpec&) -> absl::StatusOr<int> {
    int task = *next;
    *next = (task + 1) % ps_tasks;
    return task;
  };
}

PsStrategy GreedyLoadBalancingStrategy(int ps_tasks, LoadFunction load) {
  auto loads = std::make_shared<std::vector<double>>(ps_tasks, 0.0);
  return [loads, load = std::move(load)](const OpSpec& op) -> absl::StatusOr<int> {
    auto least = std::min_element(loads->begin(), loads->end());
    ASSIGN_OR_RETURN(double added, load(op));
    *least += added;
    return static_cast<int>(least - loads->begin());
  };
}

absl::StatusOr<double> ByteSizeLoad(const OpSpec& op) {
  double bytes = static_cast<double>(DTypeSize(op.dtype));
  for (int64_t extent : op.shape) {
    if (extent < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("variable ", Quoted(op.name), " has no full shape: an extent is ", extent));
    }
    bytes *= static_cast<double>(extent);
  }
  return bytes;
}

const std::vector<std::string>& StandardPsOps() {
  static const std::vector<std::string> ops = {"Variable",
                                               "VariableV2",
                                               "AutoReloadVariable",
                                               "MutableHashTable",
                                               "MutableHashTableV2",
                                               "MutableHashTableOfTensors",
                                               "MutableHashTableOfTensorsV2",
                                               "MutableDenseHashTable",
                                               "MutableDenseHashTableV2",
                                               "VarHandleOp",
                                               "BoostedTreesEnsembleResourceHandleOp",
                                               "BoostedTreesQuantileStreamResourceHandleOp",
                                               "ResourceConditionalAccumulator",
                                               "DecisionTreeResource"};
  return ops;
}

DeviceFunction ReplicaDeviceSetter(ReplicaDeviceSetterOptions options) {
  absl::StatusOr<DeviceSpec> ps_device = DeviceSpec::Parse(options.ps_device);
  absl::StatusOr<DeviceSpec> worker_device = DeviceSpec::Parse(options.worker_device);
  if (!ps_device.ok() || !worker_device.ok()) {
    absl::Status bad = ps_device.ok() ? worker_device.status() : ps_device.status();
    return [bad](const OpSpec&, const DeviceSpec&) -> absl::StatusOr<DeviceSpec> { return bad; };
  }
  int ps_tasks = options.cluster ? options.cluster->num_tasks(ps_device->job.value_or("")) : options.ps_tasks;
  if (ps_tasks <= 0) return nullptr;
  if (!options.ps_strategy) options.ps_strategy = RoundRobinStrategy(ps_tasks);
  if (options.ps_ops.empty()) options.ps_ops = StandardPsOps();

  return [ps_device = *ps_device, worker_device = *worker_device, merge = options.merge_devices,
          ps_ops = std::move(options.ps_ops), strategy = std::move(options.ps_strategy)](
             const OpSpec& op, const DeviceSpec& current) -> absl::StatusOr<DeviceSpec> {
    if (!merge && current != DeviceSpec()) return current;
    bool on_ps = ps_device != DeviceSpec() && std::find(ps_ops.begin(), ps_ops.end(), op.type) != ps_ops.end();
    if (!on_ps) return worker_device.MergedWith(current);
    DeviceSpec device = ps_device;
    // Advances the strategy even if an inner scope names the task: TensorFlow does, and both must place the next
    // variable alike.
    if (device.job && (!current.job || current.job == device.job)) {
      ASSIGN_OR_RETURN(device.task, strategy(op));
    }
    return device.MergedWith(current);
  };
}

}  // namespace muster
