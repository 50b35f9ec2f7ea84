// Finds the smallest part of a schedule that still fails: leaves out faults, workers, ps and steps one by one as long
// as the run without them fails, too.
#pragma once

#include <functional>

#include "muster/sim/fault_schedule.h"

namespace muster {

// `fails` runs the rest of `schedule` after a reduction; `start` must fail. Returns a reduction that can't be extended.
ScheduleReduction Shrink(const Schedule& schedule, const ScheduleReduction& start,
                         const std::function<bool(const ScheduleReduction&)>& fails);

}  // namespace muster
