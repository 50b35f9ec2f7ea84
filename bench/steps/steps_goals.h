// The goals of `bench steps`: which share of plain processes' speed each way must reach.
#pragma once

#include <vector>

#include "bench/steps/steps_lines.h"

namespace muster::bench {

// Prints, for each goal, one row on stdout and a line on stderr: what was reached and whether that meets it, or why it
// wasn't measured. `switch_matters`: this processor isn't Intel's.
void PrintGoals(const std::vector<StepsLine>& lines, bool switch_matters);

}  // namespace muster::bench
