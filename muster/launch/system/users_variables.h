// The variables that a user sets for muster's programs, by their beginnings. They go wherever the user's environment
// goes; muster's others are of a launcher, maybe of the job in which this process runs.
#pragma once

#include "absl/strings/string_view.h"

namespace muster {

inline constexpr absl::string_view kUsersVariables[] = {"MUSTER_HOME=",        "MUSTER_TRACE=",   "MUSTER_STATUS_PORT=",
                                                        "MUSTER_OUTPUT_ROOT=", "MUSTER_RESOLVE=", "MUSTER_MKL_AMD="};

}  // namespace muster
