// The measurements of `bench steps`, way by way, and what each way is compared with.
#pragma once

#include <optional>
#include <vector>

#include "bench/steps/steps_way.h"

namespace muster::bench {

struct StepsLine {
  StepsWay way;
  std::vector<double> rates;  // by round, minibatches per second of all workers; 0: it failed

  double median() const;
  double least() const;
  double most() const;
  bool failed() const { return least() <= 0; }
};

enum class Against {
  kLocal,      // one plain process
  kTwoLocals,  // two of them at once: the ceiling if two workers share the cores
  kUntraced,
  kSwitchOff,
};
// Returns "local", "two_locals", "untraced", "switch_off".
const char* NameOf(Against against);

// Returns the line of exactly this way; null if it wasn't measured.
const StepsLine* Find(const std::vector<StepsLine>& lines, const StepsWay& way);

// Returns the median of the rounds' ratios of a way to what it is compared with. The measurements of a round are
// minutes apart at most, so a host shared with others slows both alike. nullopt: one of both wasn't measured, or
// failed.
std::optional<double> RatioOf(const std::vector<StepsLine>& lines, const StepsWay& way, Against against);

// Print the table on stderr; with its rows, JSON on stdout. Comparisons are looked up among `lines`.
void PrintHeadings();
void PrintRows(const std::vector<StepsLine>& lines);

}  // namespace muster::bench
