// A ps's metrics for Prometheus, from its status page and the times of its track. Metrics: docs/observe.md.
// Thread-safe.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "muster/observe/track.h"

namespace muster {

// `status`: from StatusJson. InvalidArgument if it isn't.
absl::StatusOr<std::string> StoreMetricsText(const std::string& status, const Track& track);

}  // namespace muster
