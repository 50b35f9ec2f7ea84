// `muster follow`: shows a started experiment as `muster train` does, for a person on another machine who has started
// it there (experiment/train_elsewhere.h). Not started by users: --help doesn't name it.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "apps/muster/commands/command_table.h"
#include "apps/muster/experiment/experiment_command.h"
#include "apps/muster/experiment/submit_experiment.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

constexpr char kFollowDescription[] = "Show an experiment until it has ended (run by muster train on another machine)";

struct FollowFlags {
  std::string id;
  int64_t since_micros = 0;
  ShowFlags show;
};

absl::StatusOr<int> Follow(const FollowFlags& flags) {
  ASSIGN_OR_RETURN(const OpenedHome opened, OpenHomeToRead());
  ASSIGN_OR_RETURN(const ExperimentName name, ExperimentName::Parse(flags.id));
  return FollowStarted(opened, name.id, absl::FromUnixMicros(flags.since_micros), flags.show);
}

}  // namespace

void AddFollowCommand(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<FollowFlags>();
  CLI::App* command = app.add_subcommand("follow", kFollowDescription);
  command->group("");  // not in --help
  command->add_option("ID", flags->id, "An experiment")->type_name("")->required();
  command->add_option("--since", flags->since_micros, "Leave out earlier lines: those of earlier attempts")
      ->type_name("MICROS");
  command->add_flag("--json", flags->show.json, "Print one JSON object per line");
  command->add_option("--metric", flags->show.metric, "The metric that sorts a grid's results")->type_name("NAME");
  command->callback([flags, &exit_code] {
    const absl::StatusOr<int> code = Follow(*flags);
    exit_code = code.ok() ? *code : ReportError("train", code.status());
  });
}

}  // namespace muster
