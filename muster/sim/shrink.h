// Looks for the smallest part of a schedule that still fails: faults, workers, ps and steps are left out one by one for
// as long as the run without them fails, too.
#pragma once

#include <functional>

#include "muster/sim/schedule.h"

namespace muster {

// `fails` runs what a reduction leaves of `schedule`; `start` fails. Returns what can't be made smaller.
ScheduleReduction Shrink(const Schedule& schedule, const ScheduleReduction& start,
                         const std::function<bool(const ScheduleReduction&)>& fails);

}  // namespace muster
