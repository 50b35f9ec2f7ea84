// `muster help [COMMAND]`: the same as `muster COMMAND --help`.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "apps/muster/commands/command_table.h"
#include "apps/muster/terminal/help_format.h"
#include "apps/muster/terminal/usage_error.h"
#include "muster/base/text/nearest_name.h"
#include "muster/cluster/quoted.h"

namespace muster {
namespace {

constexpr char kHelpFooter[] = R"(
Examples:
  muster help
  muster help train
  muster help checkpoint diff)";

int ShowHelp(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* shown = &app;
  std::string name = app.get_name();
  for (const std::string& word : words) {
    const std::vector<std::string> names = VisibleCommands(*shown);
    const CLI::App* next = nullptr;
    for (const CLI::App* below : shown->get_subcommands({}))
      if (below->get_name() == word) next = below;
    if (next == nullptr)
      return UsageError(
          "help", absl::InvalidArgumentError(
                      absl::StrCat("unknown command ", Quoted(word), NearestHint(word, names), "; accepted: ",
                                   names.empty() ? name + " has no commands of its own" : absl::StrJoin(names, ", "))));
    shown = next;
    absl::StrAppend(&name, " ", word);
  }
  std::fputs(shown->get_formatter()->make_help(shown, name, CLI::AppFormatMode::Normal).c_str(), stdout);
  return 0;
}

}  // namespace

void AddHelpCommand(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("help", "Explain a command, with examples");
  command->add_option("COMMAND", *words, "A command, such as train, or one of several words: checkpoint diff")
      ->type_name("");
  command->footer(kHelpFooter);
  command->callback([&app, words, &exit_code] { exit_code = ShowHelp(app, *words); });
}

}  // namespace muster
