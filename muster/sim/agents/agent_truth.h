// What a simulated run of supervisors and agents is checked against, and what its parts share. Used by one thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "muster/base/split_mix64.h"
#include "muster/launch/agent/agent_limits.h"
#include "muster/launch/agent/agent_link.h"
#include "muster/launch/agent/agent_probe.h"
#include "muster/transport/simulated/simulated_process.h"
#include "muster/transport/simulated/simulated_world.h"

namespace muster {

// The one mistake of a run, if any.
class OneAgentBug final : public AgentProbe {
 public:
  explicit OneAgentBug(std::optional<PlantedAgentBug> bug) : bug_(bug) {}
  bool Has(PlantedAgentBug bug) const override { return bug_ == bug; }

 private:
  const std::optional<PlantedAgentBug> bug_;
};

// Counts the points at which a process may be killed: before and after each thing that it does.
class DeathPoints {
 public:
  void KillAt(uint64_t passes) { left_ = passes; }
  // Returns whether the process dies here.
  bool Pass() { return left_ > 0 && --left_ == 0; }

 private:
  uint64_t left_ = 0;  // 0: it isn't to be killed
};

// What is written down of a host's agent by the run's supervisors, one after the other.
struct WrittenOfHost {
  AgentProgress progress;
  bool lost = false;
};

// The run's folder. It outlives supervisors.
struct RunFolder {
  uint64_t supervisor = 0;  // the number file
  std::vector<WrittenOfHost> hosts;
  std::vector<std::set<int>> may_run_on;  // of each task, the hosts
};

struct AgentTruth {
  AgentTruth(SimulatedWorld& its_world, uint64_t seed, std::optional<PlantedAgentBug> bug)
      : world(its_world), random(SplitMix64::Mix(seed + 1)), probe(bug) {}

  void Violated(const std::string& what) {
    if (!violation) violation = what;
    Note([&] { return "VIOLATED: " + what; });
  }
  void Note(const std::function<std::string()>& line) { world.Note(line); }
  absl::Duration Draw(absl::Duration least, absl::Duration most) {
    const int64_t span = absl::ToInt64Microseconds(most - least);
    return least + absl::Microseconds(static_cast<int64_t>(random.Below(static_cast<uint64_t>(span) + 1)));
  }
  // The byte that a launch writes at a position of a stream.
  static char ByteAt(const CommandId& launch, OutputStream stream, uint64_t position) {
    return static_cast<char>('a' + (launch.supervisor * 7 + launch.number * 5 + static_cast<uint64_t>(stream) * 3 +
                                    position + position / 26) %
                                       26);
  }

  SimulatedWorld& world;
  SplitMix64 random;
  const OneAgentBug probe;
  const AgentLimits limits;
  RunFolder folder;
  std::optional<std::string> violation;
  std::set<std::pair<int, CommandId>> running;  // launches, with their hosts
  std::map<std::pair<int, CommandId>, TaskId> tasks;
  int64_t commands = 0;
  int64_t launches = 0;
  int64_t output_bytes = 0;
};

}  // namespace muster
