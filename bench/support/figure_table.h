// Figures of a benchmark that is measured in rounds, each with its goal if it has one: a row of JSON on stdout and a
// line of a table on stderr.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace muster::bench {

enum class FigureGoal : std::uint8_t { kNone, kAtMost, kAtLeast };

struct Figure {
  const char* name;
  FigureGoal kind;
  double goal;  // 0: no round may miss it; otherwise it holds for the median
  const char* what;
};

using FigureValues = std::map<std::string, std::vector<double>>;  // of all rounds, by the name of the figure

// Prints the figures that have values. Returns whether all goals are met.
bool PrintFigures(const std::string& bench, std::span<const Figure> figures, const FigureValues& values);

}  // namespace muster::bench
