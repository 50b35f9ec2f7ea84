// `muster monitor [ID]`: shows how much of the machine an experiment's tasks use, and their progress, while they run.
#pragma once

namespace CLI {
class App;
}

namespace muster {

// Adds the subcommand. When it was given on the command line, parsing runs it and `exit_code` is its result.
void AddMonitorCommand(CLI::App& app, int& exit_code);

}  // namespace muster
