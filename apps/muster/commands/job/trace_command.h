// `muster trace`: merges and summarises the traces that tasks have written.
#pragma once

namespace CLI {
class App;
}

namespace muster {

// Adds the subcommand. When it was given on the command line, parsing runs it and `exit_code` is its result.
void AddTraceCommand(CLI::App& app, int& exit_code);

}  // namespace muster
