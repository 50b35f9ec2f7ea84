// `muster train`: runs what muster.yml says, one experiment or a grid, and shows its logs; Ctrl-C leaves it to itself.
#pragma once

namespace CLI {
class App;
}

namespace muster {

// Adds the subcommand. When it was given on the command line, parsing runs it and `exit_code` is its result.
void AddTrainCommand(CLI::App& app, int& exit_code);

}  // namespace muster
