// `muster algorithms [NAME]`: lists the ways to combine the workers' updates, or one's formula, parameters and sources.
#pragma once

namespace CLI {
class App;
}

namespace muster {

// Adds the subcommand. When it was given on the command line, parsing runs it and `exit_code` is its result.
void AddAlgorithmsCommand(CLI::App& app, int& exit_code);

}  // namespace muster
