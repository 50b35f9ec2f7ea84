#include "apps/simulate/simulated_kind.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/quoted.h"
#include "muster/sim/agents/agent_simulation.h"
#include "muster/sim/cluster_simulation.h"
#include "muster/sim/shrink.h"

namespace muster {
namespace {

class ClusterKind final : public SimulatedKind {
 public:
  explicit ClusterKind(std::unique_ptr<PlantedClusterBug> bug) : bug_(std::move(bug)) {}

  std::string unit() const override { return "pushes"; }
  Outcome Run(uint64_t seed, const ScheduleReduction& reduction, const Listener& listener) override {
    const SimulationOutcome outcome =
        ClusterSimulation(reduction.Apply(DrawSchedule(seed)), bug_.get(), listener).Run();
    return {outcome.violation, outcome.events, outcome.pushes, outcome.simulated};
  }
  std::string Text(uint64_t seed, const ScheduleReduction& reduction) const override {
    return reduction.Apply(DrawSchedule(seed)).ToString();
  }
  ScheduleReduction Shrink(uint64_t seed, const ScheduleReduction& start,
                           const std::function<bool(const ScheduleReduction&)>& fails) const override {
    return muster::Shrink(DrawSchedule(seed), start, fails);
  }

 private:
  const std::unique_ptr<PlantedClusterBug> bug_;
};

// Only its faults can be left out.
class AgentsKind final : public SimulatedKind {
 public:
  explicit AgentsKind(std::optional<PlantedAgentBug> bug) : bug_(bug) {}

  std::string unit() const override { return "commands"; }
  Outcome Run(uint64_t seed, const ScheduleReduction& reduction, const Listener& listener) override {
    const AgentOutcome outcome = AgentSimulation(Reduced(seed, reduction), bug_, listener).Run();
    return {outcome.violation, outcome.events, outcome.commands, outcome.simulated};
  }
  std::string Text(uint64_t seed, const ScheduleReduction& reduction) const override {
    return Reduced(seed, reduction).ToString();
  }
  ScheduleReduction Shrink(uint64_t seed, const ScheduleReduction& start,
                           const std::function<bool(const ScheduleReduction&)>& fails) const override {
    std::vector<int> faults;
    for (size_t i = 0; i < DrawAgentSchedule(seed).faults.size(); ++i) faults.push_back(static_cast<int>(i));
    faults = start.faults.value_or(faults);
    ScheduleReduction reduction = start;
    for (size_t i = faults.size(); i-- > 0;) {
      std::vector<int> fewer = faults;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      reduction.faults = fewer;
      if (fails(reduction)) faults = std::move(fewer);
    }
    reduction.faults = faults;
    return reduction;
  }

 private:
  static AgentSchedule Reduced(uint64_t seed, const ScheduleReduction& reduction) {
    AgentSchedule schedule = DrawAgentSchedule(seed);
    if (!reduction.faults.has_value()) return schedule;
    std::vector<AgentFault> kept;
    for (const int index : *reduction.faults)
      if (index >= 0 && static_cast<size_t>(index) < schedule.faults.size())
        kept.push_back(schedule.faults[static_cast<size_t>(index)]);
    schedule.faults = std::move(kept);
    return schedule;
  }

  const std::optional<PlantedAgentBug> bug_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SimulatedKind>> MakeSimulatedKind(const std::string& world, const std::string& plant) {
  if (world == "cluster") {
    std::unique_ptr<PlantedClusterBug> bug;
    if (!plant.empty()) {
      ASSIGN_OR_RETURN(bug, MakePlantedBug(plant));
    }
    return std::make_unique<ClusterKind>(std::move(bug));
  }
  if (world != "agents")
    return absl::InvalidArgumentError(absl::StrCat("--world is ", Quoted(world), "; accepted: cluster, agents"));
  std::optional<PlantedAgentBug> bug;
  if (!plant.empty()) {
    ASSIGN_OR_RETURN(bug, ParsePlantedAgentBug(plant));
  }
  return std::make_unique<AgentsKind>(bug);
}

}  // namespace muster
