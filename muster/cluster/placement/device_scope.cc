#include "muster/cluster/placement/device_scope.h"

#include <utility>

#include "muster/base/status_macros.h"

namespace muster {

OpSpec VariableOp(const VariableSpec& variable) {
  return {.name = variable.name, .dtype = variable.dtype, .shape = variable.shape};
}

absl::StatusOr<DeviceSpec> DeviceStack::DeviceFor(const OpSpec& op) const {
  DeviceSpec device;
  for (auto function = functions_.rbegin(); function != functions_.rend() && *function; ++function) {
    ASSIGN_OR_RETURN(device, (*function)(op, device));
  }
  return device;
}

DeviceScope::DeviceScope(DeviceStack& stack, std::string_view device)
    : DeviceScope(
          stack,
          [parsed = DeviceSpec::Parse(device)](const OpSpec&, const DeviceSpec& current) -> absl::StatusOr<DeviceSpec> {
            RETURN_IF_ERROR(parsed.status());
            return parsed->MergedWith(current);
          }) {}

DeviceScope::DeviceScope(DeviceStack& stack, const DeviceSpec& device)
    : DeviceScope(stack, [device](const OpSpec&, const DeviceSpec& current) -> absl::StatusOr<DeviceSpec> {
        return device.MergedWith(current);
      }) {}

DeviceScope::DeviceScope(DeviceStack& stack, DeviceFunction function) : stack_(stack) {
  stack_.functions_.push_back(std::move(function));
}

DeviceScope::~DeviceScope() { stack_.functions_.pop_back(); }

}  // namespace muster
