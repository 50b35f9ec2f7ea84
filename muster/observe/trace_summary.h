// Computes where each step's time went, from a trace of one task or of all. Pure functions.
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/observe/step_times.h"

namespace muster {

// Returns one table per thread that has steps, in the order of the trace. The time of an activity excludes activities
// nested in it. `trace` is a merged trace or a part, as written here, with one event per line. InvalidArgument: it
// isn't one.
absl::StatusOr<std::vector<StepTimesTable>> SummarizeTrace(std::string_view trace);

}  // namespace muster
