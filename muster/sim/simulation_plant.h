// Bugs put into a simulated cluster on purpose, from outside the store: each stands between the real code and the world
// and does what a mistake in that code would do. The simulation has to find every one of them; docs/simulation.md lists
// them with a seed that shows each.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/store/service/store_service.h"
#include "muster/transport/channel.h"

namespace muster {

class SimulationPlant {
 public:
  virtual ~SimulationPlant() = default;

  // What stands between the network and a ps; null: nothing.
  virtual std::unique_ptr<RequestHandler> WrapPs(StoreService&, EventLoop&) { return nullptr; }
  // What a worker uses in place of its channel to a ps.
  virtual std::unique_ptr<Channel> WrapChannel(std::unique_ptr<Channel> channel) { return channel; }
  // Which of the store's own bugs it commits (arena_probe.h).
  virtual bool Has(PlantedBug) const { return false; }
};

// InvalidArgument names those that there are.
absl::StatusOr<std::unique_ptr<SimulationPlant>> MakePlant(const std::string& name);
const std::vector<std::string>& PlantNames();

}  // namespace muster
