// `muster logs [ID]`: shows the output of an experiment's tasks, and on request follows it.
#pragma once

namespace CLI {
class App;
}

namespace muster {

// Adds the subcommand. When it was given on the command line, parsing runs it and `exit_code` is its result.
void AddLogsCommand(CLI::App& app, int& exit_code);

}  // namespace muster
