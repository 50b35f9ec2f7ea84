// Looks for the smallest part of a schedule that still fails: faults, workers, ps and steps are left out one by one for
// as long as the run without them fails, too.
#pragma once

#include <functional>

#include "muster/sim/schedule.h"

namespace muster {

// `fails` runs a schedule. `schedule` fails. Returns what is left.
Reduction Shrink(const Schedule& schedule, const std::function<bool(const Schedule&)>& fails);

}  // namespace muster
