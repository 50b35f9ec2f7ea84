// `muster version`: the same as `muster --version`.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "apps/muster/commands/command_table.h"
#include "muster/base/version.h"

namespace muster {

void AddVersionCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("version", "Print the version");
  command->footer("\nExample:\n  muster version                 one line: muster and its version");
  command->callback([&exit_code] {
    std::printf("muster %s\n", kMusterVersion);
    exit_code = 0;
  });
}

}  // namespace muster
