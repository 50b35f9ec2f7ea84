// `muster place`: which parameter server each variable of a file would go to, and the load of each, as JSON.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "apps/muster/commands/command_table.h"
#include "apps/muster/commands/job/placement_flags.h"
#include "apps/muster/terminal/usage_error.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/placement/placement.h"
#include "muster/cluster/placement/placement_text.h"
#include "muster/cluster/quoted.h"

namespace muster {
namespace {

constexpr char kPlaceDescription[] = "Show which parameter server each variable would go to";

constexpr char kPlaceFooter[] = R"(
FILE is JSON: [{"name": "w", "shape": [784, 100], "dtype": "float32"}, {"name": "b", "shape": [100], "dtype": "float32"}]
Scalars (shape []) are never partitioned.

Examples:
  muster place --ps 2 --strategy greedy model.json
  muster place --ps 3 --partition min_slice:65536,max_partitions:3 model.json

Prints one line of JSON: {"placement": [{"name", "shard", "ps", "bytes"}, ...], "load_bytes": [...]}
in the order of the file. A mistake is one line on stderr and exit code 2.)";

struct PlaceOptions {
  PlacementFlags placement;
  std::string file;
};

absl::StatusOr<std::string> Place(const PlaceOptions& options) {
  ASSIGN_OR_RETURN(const ChosenPlacement chosen, ParsePlacementFlags(options.placement));
  absl::StatusOr<std::string> text = PosixFileSystem().ReadFile(options.file);
  if (!text.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("FILE: ", text.status().message(), "; accepted: a readable JSON file, as in muster place --help"));
  }
  ASSIGN_OR_RETURN(std::vector<VariableSpec> variables, VariablesFromJson(*text, options.file));
  ASSIGN_OR_RETURN(PlacementResult placement,
                   PlaceVariables(variables, chosen.num_ps, chosen.strategy, chosen.partitioning));
  return PlacementToJson(variables, placement);
}

int Run(const PlaceOptions& options) {
  absl::StatusOr<std::string> json = Place(options);
  if (!json.ok()) return UsageError("place", json.status());
  std::printf("%s\n", json->c_str());
  return 0;
}

}  // namespace

void AddPlaceCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<PlaceOptions>();
  CLI::App* command = app.add_subcommand("place", kPlaceDescription);
  AddPlacementFlags(*command, options->placement);
  command->add_option("FILE", options->file, "The variables, as JSON: see below")->required()->type_name("");
  command->footer(kPlaceFooter);
  command->callback([options, &exit_code] { exit_code = Run(*options); });
}

}  // namespace muster
