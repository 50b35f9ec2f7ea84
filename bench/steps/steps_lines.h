// What `bench steps` has measured, way by way, and what each way is compared with.
#pragma once

#include <optional>
#include <vector>

#include "bench/steps/steps_way.h"

namespace muster::bench {

struct StepsLine {
  StepsWay way;
  std::vector<double> rates;  // of the rounds, minibatches a second of all workers; 0: it failed

  double median() const;
  double least() const;
  double most() const;
  bool failed() const { return least() <= 0; }
};

enum class Against {
  kLocal,      // one plain process
  kTwoLocals,  // two of them at once: the ceiling where two workers share the cores
  kUntraced,
  kSwitchOff,
};
// "local", "two_locals", "untraced", "switch_off".
const char* NameOf(Against against);

// The line of exactly this way; null: it wasn't measured.
const StepsLine* Find(const std::vector<StepsLine>& lines, const StepsWay& way);

// The median of the rounds' ratios of a way to what it is compared with: a round's measurements are minutes apart at
// most, so that a host which others share slows both alike. None: one of both wasn't measured, or failed.
std::optional<double> RatioOf(const std::vector<StepsLine>& lines, const StepsWay& way, Against against);

// The table on stderr; with its rows, JSON on stdout. What a way is compared with is looked for among `lines`.
void PrintHeadings();
void PrintRows(const std::vector<StepsLine>& lines);

}  // namespace muster::bench
