// The goals that benchmarks print at their end.
#pragma once

#include <optional>
#include <string>

namespace muster::bench {

struct GoalLine {
  std::string bench;  // the name of the benchmark
  std::string what;
  double bound = 0;
  bool at_most = false;   // otherwise at least
  std::string unit = {};  // "us", on stderr
};

// Prints one row on stdout and a line on stderr: what was reached and whether that meets the goal, or, if it wasn't
// measured, `why_not`.
void PrintGoal(const GoalLine& goal, std::optional<double> reached, const std::string& why_not);

}  // namespace muster::bench
