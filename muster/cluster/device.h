// Device strings: "/job:ps/replica:0/task:1/device:CPU:0", of which any part may be missing. Parses, merges and writes
// them as TensorFlow's DeviceSpec does (tensorflow/python/framework/device_spec.py). A plain value, no thread safety
// needed.
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
  std::optional<int> device_index;         // unset: any index

  // Accepts the parts in any order, with or without the leading slash, ignores empty parts, and knows the legacy short
  // forms "/cpu:0" and "/gpu:*". InvalidArgument: two device types, an unknown part, or a malformed number.
  static absl::StatusOr<DeviceSpec> Parse(std::string_view text);

  // Writes the parts in the order job, replica, task, device; a device without an index as "/device:CPU:*". Returns ""
  // if nothing is set.
  std::string ToString() const;

  // Returns this spec (the outer one), with every field that `inner` sets replaced.
  DeviceSpec MergedWith(const DeviceSpec& inner) const;

  bool operator==(const DeviceSpec&) const = default;
};

}  // namespace muster
