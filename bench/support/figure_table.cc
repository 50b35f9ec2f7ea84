#include "bench/support/figure_table.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "bench/support/rounds.h"

namespace muster::bench {
namespace {

bool Meets(const Figure& figure, const Spread& spread) {
  const bool at_most = figure.kind == FigureGoal::kAtMost;
  const double worst = at_most ? spread.most : spread.least;
  const double judged = figure.goal == 0 ? worst : spread.median;
  return at_most ? judged <= figure.goal : judged >= figure.goal;
}

}  // namespace

bool PrintFigures(const std::string& bench, std::span<const Figure> figures, const FigureValues& values) {
  bool all_met = true;
  std::fprintf(stderr, "%-22s %14s %14s %14s %14s  %s\n", "figure", "median", "least", "most", "goal", "what");
  for (const Figure& figure : figures) {
    const auto found = values.find(figure.name);
    if (found == values.end()) continue;
    const Spread spread = SpreadOf(found->second);
    nlohmann::json row = {{"bench", bench},        {"what", figure.name}, {"median", spread.median},
                          {"least", spread.least}, {"most", spread.most}, {"runs", found->second.size()}};
    std::string goal;
    if (figure.kind != FigureGoal::kNone) {
      const bool met = Meets(figure, spread);
      all_met = all_met && met;
      row["goal"] = figure.goal;
      row["met"] = met;
      goal = absl::StrFormat("%s %.0f %s", figure.kind == FigureGoal::kAtMost ? "<=" : ">=", figure.goal,
                             met ? "met" : "MISSED");
    }
    std::printf("%s\n", row.dump().c_str());
    const int digits = spread.median >= 1000 ? 0 : 2;
    std::fprintf(stderr, "%-22s %14.*f %14.*f %14.*f %14s  %s\n", figure.name, digits, spread.median, digits,
                 spread.least, digits, spread.most, goal.c_str(), figure.what);
  }
  return all_met;
}

}  // namespace muster::bench
