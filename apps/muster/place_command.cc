#include "apps/muster/place_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "apps/muster/usage_error.h"
#include "muster/base/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/placement.h"
#include "muster/cluster/placement_text.h"
#include "muster/cluster/quoted.h"

namespace muster {
namespace {

constexpr char kDescription[] = "Show which parameter server each variable would go to";

constexpr char kFooter[] = R"(
FILE is JSON: [{"name": "w", "shape": [784, 100], "dtype": "float32"}, {"name": "b", "shape": [100], "dtype": "float32"}]
Scalars (shape []) are never partitioned.

Examples:
  muster place --ps 2 --strategy greedy model.json
  muster place --ps 3 --partition min_slice:65536,max_partitions:3 model.json

Prints one line of JSON: {"placement": [{"name", "shard", "ps", "bytes"}, ...], "load_bytes": [...]}
in the order of the file. A mistake is one line on stderr and exit code 2.)";

struct PlaceOptions {
  std::string ps;
  std::string strategy = "round_robin";
  std::string partition = "none";
  std::string file;
};

absl::StatusOr<std::string> Place(const PlaceOptions& options) {
  int num_ps = 0;
  if (!absl::SimpleAtoi(options.ps, &num_ps) || num_ps < 1) {
    return absl::InvalidArgumentError(absl::StrCat("--ps: ", Quoted(options.ps), "; accepted: a whole number from 1"));
  }
  ASSIGN_OR_RETURN(Placement strategy, ParsePlacement(options.strategy));
  ASSIGN_OR_RETURN(Partitioning partitioning, ParsePartitioning(options.partition));
  absl::StatusOr<std::string> text = PosixFileSystem().ReadFile(options.file);
  if (!text.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("FILE: ", text.status().message(), "; accepted: a readable JSON file"));
  }
  ASSIGN_OR_RETURN(std::vector<VariableSpec> variables, VariablesFromJson(*text, options.file));
  ASSIGN_OR_RETURN(PlacementResult placement, PlaceVariables(variables, num_ps, strategy, partitioning));
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
  CLI::App* command = app.add_subcommand("place", kDescription);
  command->add_option("--ps", options->ps, "How many parameter servers")->required()->type_name("N");
  command
      ->add_option("--strategy", options->strategy,
                   "round_robin (default), greedy (fewest bytes so far), greedy_sorted")
      ->type_name("NAME");
  command
      ->add_option("--partition", options->partition,
                   "none (default), fixed:N, max_bytes:B[,max_shards:K], min_slice:BYTES,max_partitions:K")
      ->type_name("HOW");
  command->add_option("FILE", options->file, "The variables, as JSON")->required()->type_name("");
  command->footer(kFooter);
  command->callback([options, &exit_code] { exit_code = Run(*options); });
}

}  // namespace muster
