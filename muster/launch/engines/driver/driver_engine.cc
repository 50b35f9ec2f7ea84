#include "muster/launch/engines/driver/driver_engine.h"

#include "muster/launch/engines/driver/driver_agents.h"
#include "muster/launch/engines/driver/driver_variables.h"
#include "muster/launch/engines/listening/listening_engine.h"
#include "muster/launch/engines/rendezvous_file.h"

namespace muster {

std::unique_ptr<Engine> MakeDriverEngine(const DriverEngineOptions& options, FdLoop& loop, const Clock& clock) {
  // Without a driver, the engine's start says so.
  const DriverVariables driver = ReadDriverVariables(options.environment).value_or(DriverVariables());
  ListeningEngineOptions listening{.hosts = options.hosts,
                                   .towards = {},
                                   .rendezvous_file = RendezvousFileIn(options.folder, options.job),
                                   .ports = options.ports,
                                   .goes_on = options.goes_on,
                                   .note = options.note};
  for (const auto& [name, address] : driver.hosts) listening.towards.push_back(address);
  return std::make_unique<ListeningEngine>(
      std::move(listening),
      std::make_unique<DriverAgents>(
          DriverAgentsOptions{.socket = driver.socket, .job = options.job, .grace = options.grace}, loop),
      loop, clock);
}

bool EndAllOfDriver(const std::vector<std::string>& environment, absl::Duration patience) {
  const auto driver = ReadDriverVariables(environment);
  return driver.ok() && EndAllAgents(driver->socket, patience);
}

}  // namespace muster
