// `bench steps --table`: where the time of a minibatch goes, on the workers and on the ps, and which processes use the
// cores.
#pragma once

#include <string>
#include <vector>

#include "bench/steps/steps_way.h"

namespace muster::bench {

// Measures each way once, traced, and prints it: JSON on stdout, a table on stderr. Returns false if one of them
// failed.
bool PrintStepsTable(const std::vector<StepsWay>& ways, const StepsSettings& settings, const std::string& folder);

}  // namespace muster::bench
