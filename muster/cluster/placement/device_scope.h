// Places everything that is created inside a block of code: `DeviceScope scope(devices, "/job:ps/task:1");` is
// TensorFlow's `with tf.device(...)`. Scopes nest; for each field the innermost scope that sets it wins. The stack of
// open scopes is an object of the model under construction, not a hidden global, so that several models can be built at
// once in threads of their own. Not thread-safe: a stack belongs to the one thread that builds.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/dtype.h"
#include "muster/cluster/cluster_spec.h"
#include "muster/cluster/device.h"
#include "muster/cluster/placement/variable_spec.h"

namespace muster {

// What placement must know about the thing being created.
struct OpSpec {
  std::string type = "VarHandleOp";  // TensorFlow's name of the kind of operation; variables are "VarHandleOp"
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
};
OpSpec VariableOp(const VariableSpec& variable);

// Receives the op and the device that the inner scopes have chosen; returns the device to use from there on. Its result
// replaces, not merges (TensorFlow's device functions). An empty function hides the scopes around it, as
// tf.device(None) does.
using DeviceFunction = std::function<absl::StatusOr<DeviceSpec>(const OpSpec& op, const DeviceSpec& current)>;

// The scopes that are open now, outermost first.
class DeviceStack {
 public:
  DeviceStack() = default;
  DeviceStack(const DeviceStack&) = delete;
  DeviceStack& operator=(const DeviceStack&) = delete;

  // Returns the device of an op created now. Calls the device functions, which may count: call this once per op.
  // InvalidArgument if an open scope was given a string that isn't a device.
  absl::StatusOr<DeviceSpec> DeviceFor(const OpSpec& op) const;

 private:
  friend class DeviceScope;
  std::vector<DeviceFunction> functions_;
};

// Opens the scope on construction and closes it on destruction, like a lock guard. `stack` must outlive it. DeviceFor
// reports a string that isn't a device.
class DeviceScope {
 public:
  DeviceScope(DeviceStack& stack, std::string_view device);
  DeviceScope(DeviceStack& stack, const char* device) : DeviceScope(stack, std::string_view(device)) {}
  DeviceScope(DeviceStack& stack, const DeviceSpec& device);
  DeviceScope(DeviceStack& stack, DeviceFunction function);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  DeviceStack& stack_;
};

}  // namespace muster
