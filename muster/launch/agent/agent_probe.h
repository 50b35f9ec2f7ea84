// Mistakes that the simulation of agents must find (docs/simulation.md). The protocol asks its probe whether to make
// one; outside the simulation it has no probe.
#pragma once

namespace muster {

enum class PlantedAgentBug {
  kAcknowledgeUnwritten,  // an agent acknowledges a command before its journal has it
  kAcceptLowerNumber,     // an agent accepts a supervisor that was replaced
  kRenewByAnyFrame,       // an agent's grace is renewed by frames that answer nothing
  kDropHighest,           // a supervisor forgets its newest command at a new stream
  kReplaceEarly,          // a supervisor takes a suspect host for a lost one
  kWriteWithoutNumber,    // a supervisor writes frames without having read its number lately
  kIgnorePositions,       // a supervisor takes output by its entry's number alone
};

class AgentProbe {
 public:
  virtual ~AgentProbe() = default;
  virtual bool Has(PlantedAgentBug) const { return false; }
};

}  // namespace muster
