// Which tasks of the cluster a session talks to, as device strings that may be partial: TensorFlow's
// ConfigProto.device_filters, matched as its DeviceNameUtils::AreCompatibleDevNames does. A plain value; const methods
// may be called from any thread.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/cluster/device.h"

namespace muster {

class DeviceFilters {
 public:
  // Allows every device.
  DeviceFilters() = default;

  // InvalidArgument: a filter isn't a device string, or is empty; the message names its position in the list.
  static absl::StatusOr<DeviceFilters> Parse(const std::vector<std::string>& filters);

  // True if there are no filters, or if one of them contradicts no field of `device`. A field that either leaves open
  // matches.
  bool Allow(const DeviceSpec& device) const;

  bool empty() const { return filters_.empty(); }
  // Returns "[/job:ps, /job:worker/task:1]".
  std::string ToString() const;

 private:
  std::vector<DeviceSpec> filters_;
};

}  // namespace muster
