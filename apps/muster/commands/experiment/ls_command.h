// `muster ls`: experiments with their parameters and how they ended.
#pragma once

namespace CLI {
class App;
}

namespace muster {

// Adds the subcommand. When it was given on the command line, parsing runs it and `exit_code` is its result.
void AddLsCommand(CLI::App& app, int& exit_code);

}  // namespace muster
