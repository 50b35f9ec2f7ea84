// The work that a push brings: the tickets of the units (work_queue.h) whose examples its gradients were computed from.
// A plain value.
#pragma once

#include <cstdint>

namespace muster {

struct WorkRange {
  uint64_t from = 0;     // the first; 0: none
  uint64_t through = 0;  // the last

  bool operator==(const WorkRange&) const = default;
};

}  // namespace muster
