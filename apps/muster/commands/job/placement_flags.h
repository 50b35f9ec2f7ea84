// The flags by which a command is told of parameter servers and of how variables go to them; the same for every
// command.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "muster/cluster/placement/placement.h"

namespace CLI {
class App;
}

namespace muster {

// As given.
struct PlacementFlags {
  std::string ps;
  std::string strategy = "round_robin";
  std::string partition = "none";
};

struct ChosenPlacement {
  int num_ps = 0;
  Placement strategy = Placement::kRoundRobin;
  Partitioning partitioning;
};

// --ps (required), --strategy, --partition. `flags` must outlive the parsing.
void AddPlacementFlags(CLI::App& command, PlacementFlags& flags);

// InvalidArgument names the flag, its value and what is accepted.
absl::StatusOr<ChosenPlacement> ParsePlacementFlags(const PlacementFlags& flags);

}  // namespace muster
