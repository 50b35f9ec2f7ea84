// What a ps says about itself for Prometheus, from its status page and the times of its track. Metrics:
// docs/observe.md. Thread-safe.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "muster/observe/track.h"

namespace muster {

// `status`: of StatusJson. InvalidArgument: it isn't one.
absl::StatusOr<std::string> StoreMetricsText(const std::string& status, const Track& track);

}  // namespace muster
