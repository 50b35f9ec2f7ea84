// The middle of several measurements: what a benchmark reports, since one that was disturbed doesn't move it.
#pragma once

#include <algorithm>
#include <vector>

namespace muster::bench {

// Of an even number the upper of the two in the middle; `values` isn't empty.
inline double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace muster::bench
