// `muster train`: runs the experiment or grid of muster.yml and shows its logs; it keeps running after Ctrl-C.
#pragma once

namespace CLI {
class App;
}

namespace muster {

// Adds the subcommand. When it was given on the command line, parsing runs it and `exit_code` is its result.
void AddTrainCommand(CLI::App& app, int& exit_code);

}  // namespace muster
