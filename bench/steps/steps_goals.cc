#include "bench/steps/steps_goals.h"

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/support/goal.h"

namespace muster::bench {
namespace {

struct Goal {
  StepsWay way;
  Against against;
  double at_least;
};

constexpr char kA[] = "mlp100";
constexpr char kB[] = "mlp2048";

StepsWay Direct(const char* model, const char* rule, int workers) {
  return {.model = model, .rule = rule, .mode = "async", .workers = workers, .apply = "direct"};
}

StepsWay OfServer(const char* model, const char* mode, const char* transport, int workers, const char* wire = "fp32") {
  return {.model = model, .mode = mode, .workers = workers, .apply = "server", .transport = transport, .wire = wire};
}

StepsWay Traced(StepsWay way) {
  way.traced = true;
  return way;
}

std::vector<Goal> Goals() {
  constexpr Against kOne = Against::kLocal, kTwo = Against::kTwoLocals;
  std::vector<Goal> goals;
  goals.push_back({{.model = kA}, Against::kSwitchOff, 1.7});
  goals.push_back({{.model = kB}, Against::kSwitchOff, 1.9});
  for (const char* model : {kA, kB}) {
    goals.push_back({{.model = model, .mode = kAlone}, kOne, 0.98});
    goals.push_back({Direct(model, "sgd", 1), kOne, 0.95});
    goals.push_back({Direct(model, "sgd", 2), kTwo, 0.95});
  }
  for (const Goal& goal :
       {Goal{Direct(kA, "adam", 1), kOne, 0.94}, Goal{Direct(kB, "adam", 1), kOne, 0.93},
        Goal{Direct(kA, "adam", 2), kTwo, 0.88}, Goal{Direct(kB, "adam", 2), kTwo, 0.93},
        Goal{OfServer(kA, "async", "shm", 1), kOne, 0.75}, Goal{OfServer(kB, "async", "shm", 1), kOne, 0.87},
        Goal{OfServer(kA, "async", "shm", 2), kTwo, 0.75}, Goal{OfServer(kB, "async", "shm", 2), kTwo, 0.80},
        Goal{OfServer(kA, "async", "tcp", 1), kOne, 0.62}, Goal{OfServer(kB, "async", "tcp", 1), kOne, 0.70},
        Goal{OfServer(kA, "async", "tcp", 2), kTwo, 0.65}, Goal{OfServer(kA, "pipelined", "tcp", 1), kOne, 0.90},
        Goal{OfServer(kB, "pipelined", "tcp", 1), kOne, 0.95},
        Goal{OfServer(kB, "pipelined", "tcp", 1, "bf16"), kOne, 0.98},
        Goal{{.model = kA, .mode = "sync", .workers = 2, .apply = "auto"}, kTwo, 0.73},
        Goal{{.model = kB, .mode = "sync", .workers = 2, .apply = "auto"}, kTwo, 0.85},
        Goal{Traced(Direct(kB, "sgd", 1)), Against::kUntraced, 0.98},
        Goal{Traced(Direct(kB, "sgd", 2)), Against::kUntraced, 0.98}})
    goals.push_back(goal);
  return goals;
}

std::string WhyNot(const std::vector<StepsLine>& lines, const Goal& goal, bool switch_matters) {
  if (goal.against == Against::kSwitchOff && !switch_matters) return "on an Intel processor the switch changes nothing";
  const StepsLine* const line = Find(lines, goal.way);
  if (line == nullptr) return "not among what was asked for";
  if (line->failed()) return "it failed";
  return absl::StrCat("what it is compared with (", NameOf(goal.against), ") wasn't measured, or failed");
}

}  // namespace

void PrintGoals(const std::vector<StepsLine>& lines, bool switch_matters) {
  std::fprintf(stderr, "\ngoals, set on an AMD processor:\n");
  for (const Goal& goal : Goals()) {
    const std::string what =
        absl::StrFormat("%s %s %s, %d worker%s, against %s", goal.way.model, goal.way.rule, NameOf(goal.way),
                        goal.way.workers, goal.way.workers > 1 ? "s" : "", NameOf(goal.against));
    const std::optional<double> reached = RatioOf(lines, goal.way, goal.against);
    PrintGoal({.bench = "steps", .what = what, .bound = goal.at_least}, reached,
              reached ? "" : WhyNot(lines, goal, switch_matters));
  }
}

}  // namespace muster::bench
