#include "bench/support/goal.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace muster::bench {

void PrintGoal(const GoalLine& goal, std::optional<double> reached, const std::string& why_not) {
  nlohmann::ordered_json row = {
      {"bench", goal.bench}, {"goal", goal.what}, {goal.at_most ? "at_most" : "at_least", goal.bound}};
  if (reached) {
    const bool met = goal.at_most ? *reached <= goal.bound : *reached >= goal.bound;
    row["reached"] = *reached;
    row["met"] = met;
    std::fprintf(stderr, "  %-12s %6.3f of %g%s  %s\n", met ? "met" : "NOT MET", *reached, goal.bound,
                 goal.unit.c_str(), goal.what.c_str());
  } else {
    row["met"] = nullptr;
    row["why"] = why_not;
    std::fprintf(stderr, "  %-12s           %g%s  %s: %s\n", "NOT MEASURED", goal.bound, goal.unit.c_str(),
                 goal.what.c_str(), why_not.c_str());
  }
  std::printf("%s\n", row.dump().c_str());
}

}  // namespace muster::bench
