// Bugs put into a simulated cluster on purpose, from outside the store: each sits between the real code and the world
// and does what a mistake in that code would do. The simulation must find every one of them; docs/simulation.md lists
// them with a seed that shows each.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/store/service/store_service.h"
#include "muster/transport/channel.h"

namespace muster {

class PlantedClusterBug {
 public:
  virtual ~PlantedClusterBug() = default;

  // Returns a handler to put between the network and a ps; null: none.
  virtual std::unique_ptr<RequestHandler> WrapPs(StoreService&, EventLoop&) { return nullptr; }
  // Returns the channel that a worker uses instead of its channel to a ps.
  virtual std::unique_ptr<Channel> WrapChannel(std::unique_ptr<Channel> channel) { return channel; }
  // Returns whether the store must commit this bug itself (arena_probe.h).
  virtual bool Has(PlantedBug) const { return false; }
};

// InvalidArgument lists the existing names.
absl::StatusOr<std::unique_ptr<PlantedClusterBug>> MakePlantedBug(const std::string& name);
const std::vector<std::string>& PlantedBugNames();

}  // namespace muster
