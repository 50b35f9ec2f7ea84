// How benchmarks measure: contenders in turns, round after round, of which the medians count. One disturbed measurement
// doesn't move a median, and a slow minute of the machine affects all contenders of a round alike.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace muster::bench {

// Returns the order in which a round measures `contenders`: every other round goes backwards, so that on a machine that
// gets slower within a round none gains by its place.
inline std::vector<size_t> Turns(size_t contenders, int round) {
  std::vector<size_t> order(contenders);
  std::iota(order.begin(), order.end(), size_t{0});
  if (round % 2 != 0) std::reverse(order.begin(), order.end());
  return order;
}

// What a row of a table says of the values of all rounds; zeros if there are none.
struct Spread {
  double median = 0;  // of an even number the upper of the two in the middle
  double least = 0;
  double most = 0;
};

inline Spread SpreadOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? Spread() : Spread{values[values.size() / 2], values.front(), values.back()};
}

inline double Median(std::vector<double> values) { return SpreadOf(std::move(values)).median; }

// Returns the median of the rounds' ratios of `values` to `against`.
inline double MedianRatio(const std::vector<double>& values, const std::vector<double>& against) {
  std::vector<double> ratios;
  for (size_t round = 0; round < values.size(); ++round) ratios.push_back(values[round] / against.at(round));
  return Median(std::move(ratios));
}

inline double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <typename Work>
double SecondsOf(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return SecondsSince(start);
}

}  // namespace muster::bench
