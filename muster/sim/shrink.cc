#include "muster/sim/shrink.h"

#include <numeric>
#include <utility>
#include <vector>

namespace muster {

ScheduleReduction Shrink(const Schedule& schedule, const ScheduleReduction& start,
                         const std::function<bool(const ScheduleReduction&)>& fails) {
  ScheduleReduction smallest = start;
  const auto try_this = [&](const ScheduleReduction& candidate) {
    if (!fails(candidate)) return false;
    smallest = candidate;
    return true;
  };
  std::vector<int> faults(schedule.faults.size());
  std::iota(faults.begin(), faults.end(), 0);
  if (start.faults) faults = *start.faults;
  smallest.faults = faults;
  for (bool shrunk = true; shrunk;) {
    shrunk = false;
    for (size_t i = faults.size(); i-- > 0;) {
      std::vector<int> others = faults;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      ScheduleReduction without = smallest;
      without.faults = others;
      if (!try_this(without)) continue;
      faults = std::move(others);
      shrunk = true;
    }
    ScheduleReduction fewer = smallest;
    const int workers = smallest.num_workers.value_or(schedule.num_workers);
    if (workers > 1) {
      fewer.num_workers = workers - 1;
      shrunk |= try_this(fewer);
    }
    fewer = smallest;
    const int ps = smallest.num_ps.value_or(schedule.num_ps);
    if (ps > 1) {
      fewer.num_ps = ps - 1;
      shrunk |= try_this(fewer);
    }
    for (const int64_t share : {2, 1}) {
      fewer = smallest;
      const int64_t steps = smallest.last_step.value_or(schedule.last_step);
      fewer.last_step = share == 2 ? steps / 2 : steps - 1;
      if (*fewer.last_step >= 1) shrunk |= try_this(fewer);
    }
  }
  return smallest;
}

}  // namespace muster
