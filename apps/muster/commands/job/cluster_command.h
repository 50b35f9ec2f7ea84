// `muster cluster`: shows as JSON how a program reads TF_CONFIG and the task's flags.
#pragma once

namespace CLI {
class App;
}

namespace muster {

// Adds the subcommand. When it was given on the command line, parsing runs it and `exit_code` is its result.
void AddClusterCommand(CLI::App& app, int& exit_code);

}  // namespace muster
