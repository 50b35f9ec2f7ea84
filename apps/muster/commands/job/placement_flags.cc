#include "apps/muster/commands/job/placement_flags.h"

#include <CLI/CLI.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/placement/placement_text.h"
#include "muster/cluster/quoted.h"

namespace muster {

void AddPlacementFlags(CLI::App& command, PlacementFlags& flags) {
  command.add_option("--ps", flags.ps, "How many parameter servers")->required()->type_name("N");
  command
      .add_option("--strategy", flags.strategy, "round_robin (default), greedy (fewest bytes so far), greedy_sorted")
      ->type_name("NAME");
  command
      .add_option("--partition", flags.partition,
                  "none (default), fixed:N, max_bytes:B[,max_shards:K], min_slice:BYTES,max_partitions:K")
      ->type_name("HOW");
}

absl::StatusOr<ChosenPlacement> ParsePlacementFlags(const PlacementFlags& flags) {
  ChosenPlacement chosen;
  if (!absl::SimpleAtoi(flags.ps, &chosen.num_ps) || chosen.num_ps < 1) {
    return absl::InvalidArgumentError(absl::StrCat("--ps: ", Quoted(flags.ps), "; accepted: a whole number from 1"));
  }
  ASSIGN_OR_RETURN(chosen.strategy, ParsePlacement(flags.strategy));
  ASSIGN_OR_RETURN(chosen.partitioning, ParsePartitioning(flags.partition));
  return chosen;
}

}  // namespace muster
