// `muster supervise`: the process that sees to an experiment from its start to its end. Started by `muster train` and
// by the supervisor of a grid, not by users: --help doesn't name it.
#pragma once

namespace CLI {
class App;
}

namespace muster {

// Adds the subcommand. When it was given on the command line, parsing runs it and `exit_code` is its result.
void AddSuperviseCommand(CLI::App& app, int& exit_code);

}  // namespace muster
