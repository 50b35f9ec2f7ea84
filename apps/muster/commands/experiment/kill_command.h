// `muster kill ID…`: ends experiments, or runs of grids, and waits until they have ended.
#pragma once

namespace CLI {
class App;
}

namespace muster {

// Adds the subcommand. When it was given on the command line, parsing runs it and `exit_code` is its result.
void AddKillCommand(CLI::App& app, int& exit_code);

}  // namespace muster
