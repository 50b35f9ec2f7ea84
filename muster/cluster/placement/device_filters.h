// Which tasks of the cluster a session talks to, as device strings of which each may be a part: TensorFlow's
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
  // Lets everything through.
  DeviceFilters() = default;

  // InvalidArgument: a filter that is no device string, or that is empty, with its place in the list.
  static absl::StatusOr<DeviceFilters> Parse(const std::vector<std::string>& filters);

  // There is no filter, or one that contradicts `device` in nothing: what either of the two leaves open fits.
  bool Allow(const DeviceSpec& device) const;

  bool empty() const { return filters_.empty(); }
  // "[/job:ps, /job:worker/task:1]".
  std::string ToString() const;

 private:
  std::vector<DeviceSpec> filters_;
};

}  // namespace muster
