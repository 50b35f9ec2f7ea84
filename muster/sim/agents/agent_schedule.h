// One simulated run of a supervisor and its agents: hosts, tasks and faults, drawn from a seed. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace muster {

enum class AgentFaultKind {
  kCut,                // breaks the host's stream after `bytes` more bytes to the agent, or to the supervisor
  kPart,               // stops all bytes between the host and the supervisors for `lasts`
  kMute,               // the same, but only those from the host
  kDeaf,               // the same, but only those to the host
  kKillAgent,          // at the `passes`-th point that it passes; another life is started after `lasts`
  kPauseAgent,         // SIGSTOP for `lasts`
  kKillHost,           // with everything on it, for good
  kKillSupervisor,     // at the `passes`-th point that it passes; another is started after `lasts` (InfiniteDuration:
                       // never)
  kReplaceSupervisor,  // another is started while it lives, and can't reach the host for `lasts`
};

struct AgentFault {
  AgentFaultKind kind = AgentFaultKind::kCut;
  absl::Duration at;
  int host = 0;
  absl::Duration lasts;
  uint64_t passes = 1;
  uint64_t bytes = 0;
  bool to_agent = false;

  std::string ToString() const;
};

struct AgentSchedule {
  uint64_t seed = 0;
  int hosts = 1;
  int tasks = 1;       // the first is a ps, the others are workers
  absl::Duration run;  // then everything is stopped
  std::vector<AgentFault> faults;

  std::string ToString() const;
};

AgentSchedule DrawAgentSchedule(uint64_t seed);

}  // namespace muster
