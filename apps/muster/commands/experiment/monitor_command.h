// `muster monitor [ID]`: what the tasks of an experiment use of the machine, and how far they are, while they run.
#pragma once

namespace CLI {
class App;
}

namespace muster {

// Adds the subcommand. When it was given on the command line, parsing runs it and `exit_code` is its result.
void AddMonitorCommand(CLI::App& app, int& exit_code);

}  // namespace muster
