// What `bench steps` is held against: shares of the speed of plain processes that each way has to reach.
#pragma once

#include <vector>

#include "bench/steps/steps_lines.h"

namespace muster::bench {

// Of each goal one row on stdout, and a line on stderr: reached and met or not, or that it wasn't measured, and why.
// `switch_matters`: this processor isn't Intel's.
void PrintGoals(const std::vector<StepsLine>& lines, bool switch_matters);

}  // namespace muster::bench
