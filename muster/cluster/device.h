// Device strings: "/job:ps/replica:0/task:1/device:CPU:0", any part of which may be missing. Parsed, merged and written
// as TensorFlow's DeviceSpec (tensorflow/python/framework/device_spec.py) does. A plain value, no thread safety needed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster {

struct DeviceSpec {
  std::optional<std::string> job;
  std::optional<int> replica;
  std::optional<int> task;
  std::optional<std::string> device_type;  // "CPU", "GPU", or as written after "device:"
  std::optional<int> device_index;         // unset is "any"

  // The parts in any order, with or without the leading slash, empty parts ignored, the legacy short forms "/cpu:0" and
  // "/gpu:*" too. InvalidArgument: two device types, an unknown part, a number that isn't one.
  static absl::StatusOr<DeviceSpec> Parse(std::string_view text);

  // Parts in the order job, replica, task, device; the device as "/device:CPU:*" if it has no index. "" if nothing is
  // set.
  std::string ToString() const;

  // This one (the outer) with every field that `inner` sets replaced.
  DeviceSpec MergedWith(const DeviceSpec& inner) const;

  bool operator==(const DeviceSpec&) const = default;
};

}  // namespace muster
