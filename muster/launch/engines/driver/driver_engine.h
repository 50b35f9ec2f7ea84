// The engine for the hosts of a job that has a driver (driver_agents.h). Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/net/port_range.h"
#include "muster/launch/engines/engine.h"
#include "muster/launch/system/fd_loop.h"

namespace muster {

struct DriverEngineOptions {
  std::vector<std::string> hosts;                 // all of the job, as the driver names them
  std::vector<std::string> environment;           // has what the driver has told, "NAME=VALUE"
  std::string job;                                // of the agents: letters, digits and '-'
  absl::Duration grace = absl::Seconds(30);       // of the agents, in whole seconds
  std::string folder;                             // for the rendezvous, which the next supervisor reads; it exists
  bool goes_on = false;                           // the agents are there: those of the supervisor before
  std::optional<PortRange> ports = std::nullopt;  // as ListeningEngineOptions::ports
  std::function<void(const std::string& line)> note = [](const std::string&) {};  // takes a line for the user
};

// Borrows `loop` and `clock`, which must outlive it.
std::unique_ptr<Engine> MakeDriverEngine(const DriverEngineOptions& options, FdLoop& loop, const Clock& clock);

// Has the driver in `environment` kill all agents that it has started, and waits for that, at most for `patience`.
// Returns whether it has.
bool EndAllOfDriver(const std::vector<std::string>& environment, absl::Duration patience);

}  // namespace muster
