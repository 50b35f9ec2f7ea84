// `muster supervise`: the process that supervises an experiment from its start to its end. `muster train` and the
// supervisor of a grid start it, not users: --help doesn't list it.
#pragma once

namespace CLI {
class App;
}

namespace muster {

// Adds the subcommand. When it was given on the command line, parsing runs it and `exit_code` is its result.
void AddSuperviseCommand(CLI::App& app, int& exit_code);

}  // namespace muster
