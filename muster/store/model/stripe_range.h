// Some stripes of one slice. A plain value.
#pragma once

#include <cstdint>
#include <limits>

namespace muster {

struct StripeRange {
  int64_t first = 0;                                    // number within the slice
  int64_t count = std::numeric_limits<int64_t>::max();  // as many as there are
};

}  // namespace muster
