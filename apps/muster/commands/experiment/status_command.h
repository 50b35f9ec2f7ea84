// `muster status [ID]`: shows running experiments and the last few, or the tasks of one.
#pragma once

namespace CLI {
class App;
}

namespace muster {

// Adds the subcommand. When it was given on the command line, parsing runs it and `exit_code` is its result.
void AddStatusCommand(CLI::App& app, int& exit_code);

}  // namespace muster
