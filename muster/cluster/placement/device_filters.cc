#include "muster/cluster/placement/device_filters.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster {
namespace {

template <typename Field>
bool Fits(const Field& one, const Field& other) {
  return !one || !other || *one == *other;
}

}  // namespace

absl::StatusOr<DeviceFilters> DeviceFilters::Parse(const std::vector<std::string>& filters) {
  DeviceFilters parsed;
  for (size_t i = 0; i < filters.size(); ++i) {
    absl::StatusOr<DeviceSpec> filter = DeviceSpec::Parse(filters[i]);
    if (!filter.ok())
      return absl::InvalidArgumentError(absl::StrCat("device_filters [", i, "]: ", filter.status().message()));
    if (*filter == DeviceSpec())
      return absl::InvalidArgumentError(absl::StrCat("device_filters [", i,
                                                     "] is empty, which would let everything through; accepted: such "
                                                     "as /job:ps, or no filters at all"));
    parsed.filters_.push_back(*std::move(filter));
  }
  return parsed;
}

bool DeviceFilters::Allow(const DeviceSpec& device) const {
  for (const DeviceSpec& filter : filters_) {
    if (Fits(filter.job, device.job) && Fits(filter.replica, device.replica) && Fits(filter.task, device.task) &&
        Fits(filter.device_type, device.device_type) && Fits(filter.device_index, device.device_index))
      return true;
  }
  return filters_.empty();
}

std::string DeviceFilters::ToString() const {
  return absl::StrCat(
      "[", absl::StrJoin(filters_, ", ", [](std::string* out, const DeviceSpec& filter) { *out += filter.ToString(); }),
      "]");
}

}  // namespace muster
