// The median of several measurements, which benchmarks report because one disturbed measurement doesn't move it.
#pragma once

#include <algorithm>
#include <vector>

namespace muster::bench {

// For an even number returns the upper of the two in the middle. `values` must not be empty.
inline double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace muster::bench
