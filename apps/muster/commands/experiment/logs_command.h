// `muster logs [ID]`: what the tasks of an experiment have written, and on request what they go on to write.
#pragma once

namespace CLI {
class App;
}

namespace muster {

// Adds the subcommand. When it was given on the command line, parsing runs it and `exit_code` is its result.
void AddLogsCommand(CLI::App& app, int& exit_code);

}  // namespace muster
