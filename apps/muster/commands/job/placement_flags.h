// The flags for the number of parameter servers and the placement of variables on them, the same for every command.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "muster/cluster/placement/placement.h"

namespace CLI {
class App;
}

namespace muster {

// The flags' texts.
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

// Adds --ps (required), --strategy and --partition. `flags` must outlive the parsing.
void AddPlacementFlags(CLI::App& command, PlacementFlags& flags);

// Returns InvalidArgument naming the flag, its value and what is accepted.
absl::StatusOr<ChosenPlacement> ParsePlacementFlags(const PlacementFlags& flags);

}  // namespace muster
