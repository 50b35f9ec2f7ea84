// One run of an AgentSchedule (docs/simulation.md, "Agents"): supervisors and agents with the real protocol between
// them, over streams that break at any byte, checked from the first event to the last.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/sim/agents/agent_host.h"
#include "muster/sim/agents/agent_schedule.h"
#include "muster/sim/agents/agent_truth.h"
#include "muster/sim/agents/simulated_supervisor.h"
#include "muster/transport/simulated/simulated_process.h"  // of which a world is made
#include "muster/transport/simulated/simulated_world.h"

namespace muster {

struct AgentOutcome {
  std::optional<std::string> violation;  // the first one
  uint64_t fingerprint = 0;
  uint64_t events = 0;
  absl::Duration simulated;
  int64_t commands = 0;  // taken in
  int64_t launches = 0;
  int64_t output_bytes = 0;  // in the logs
};

class AgentSimulation {
 public:
  // `listener`, if given, is told what happens.
  AgentSimulation(const AgentSchedule& schedule, std::optional<PlantedAgentBug> bug,
                  std::function<void(absl::Time, const std::string&)> listener = nullptr);

  // Call once.
  AgentOutcome Run();

 private:
  // A connection of a supervisor and an agent.
  struct Stream {
    uint64_t supervisor = 0;
    int host = 0;
    SupervisorLink::StreamId id{};
    bool open = true;
    struct Way {
      size_t on_its_way = 0;
      std::deque<std::string> pieces;  // that are on their way
      absl::Time last;                 // when the last of them arrives
      std::optional<uint64_t> cut_after;
    };
    std::array<Way, 2> ways;  // to the supervisor, to the agent
  };
  // What a link of a supervisor to a host is doing.
  struct Line {
    std::shared_ptr<Stream> stream;
    bool dialling = false;
    absl::Duration pause = absl::Milliseconds(50);
  };
  struct Supervisor {
    std::unique_ptr<SimulatedSupervisor> process;
    std::vector<Line> lines;
  };
  struct Trouble {
    std::array<absl::Time, 2> until = {absl::InfinitePast(), absl::InfinitePast()};  // by way
    uint64_t least_supervisor = 0;                                                   // of the supervisors concerned
  };

  absl::Time Now() const { return world_.Now(); }
  void StartSupervisor();
  void SupervisorDied(uint64_t number, absl::Duration back_after);
  Supervisor* Find(uint64_t number);
  void Tick();
  void Meet(const AgentFault& fault);
  absl::Time ReachableFrom(uint64_t supervisor, int host, bool to_agent) const;
  void Dial(uint64_t supervisor, int host);
  void DialAgain(uint64_t supervisor, int host);
  void Connect(uint64_t supervisor, int host);
  void Pump(const std::shared_ptr<Stream>& stream, bool to_agent);
  void SendPiece(const std::shared_ptr<Stream>& stream, bool to_agent, std::string piece);
  void Deliver(const std::shared_ptr<Stream>& stream, bool to_agent);
  void Close(const std::shared_ptr<Stream>& stream);
  void AgentGone(int host);
  bool Over();
  void CheckTheEnd(SimulatedWorld::Ending ending);

  const AgentSchedule schedule_;
  SimulatedWorld world_;
  AgentTruth truth_;
  std::vector<std::unique_ptr<AgentHost>> hosts_;
  std::vector<Supervisor> supervisors_;  // that live, the newest last
  std::vector<Supervisor> dead_;         // kept: callbacks of theirs may be under way
  std::vector<Trouble> troubles_;        // of each host
  std::vector<Trouble> successor_troubles_;
  absl::Duration back_after_;
  bool supervisor_comes_ = false;
  std::optional<absl::Time> last_supervisor_ended_;
};

// InvalidArgument lists the names.
absl::StatusOr<PlantedAgentBug> ParsePlantedAgentBug(const std::string& name);
const std::vector<std::string>& PlantedAgentBugNames();

}  // namespace muster
