// The variables that a user sets for muster's programs, by their beginnings. They go to the tasks of a job of Slurm, as
// the rest of the user's environment does. Muster's others are of a launcher, maybe of the job in which this process
// runs, or of one machine (MUSTER_INDEX, MUSTER_STATUS_PORT), or for a program that is started by hand (MUSTER_PS).
#pragma once

#include "absl/strings/string_view.h"

namespace muster {

inline constexpr absl::string_view kUsersVariables[] = {
    "MUSTER_HOME=", "MUSTER_TRACE=", "MUSTER_OUTPUT_ROOT=", "MUSTER_RESOLVE=", "MUSTER_MKL_AMD="};

}  // namespace muster
