// Reads the training progress that a program of framework muster shows on its status page (docs/observe.md). Functions
// without state, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace muster {

struct TaskProgress {
  std::optional<double> steps_per_second, loss;
  std::optional<double> staleness;  // the median
  std::optional<int64_t> step;      // the global one

  bool operator==(const TaskProgress&) const = default;
};

// Parses what a worker's or a ps's page serves at /status; missing values are unset.
TaskProgress ProgressOfStatus(std::string_view json);

// `status_address`: "127.0.0.1:9100"; empty: none. Fields are unset if no page answers within `patience`, for which the
// call blocks at most.
TaskProgress ReadProgress(const std::string& status_address, absl::Duration patience = absl::Milliseconds(200));

}  // namespace muster
