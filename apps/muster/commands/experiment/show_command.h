// `muster show [ID]`: all that is known of an experiment, its results included.
#pragma once

namespace CLI {
class App;
}

namespace muster {

// Adds the subcommand. When it was given on the command line, parsing runs it and `exit_code` is its result.
void AddShowCommand(CLI::App& app, int& exit_code);

}  // namespace muster
