// `muster checkpoint`: ls, show, diff, verify and reshard work on files, load on a running job.
#pragma once

namespace CLI {
class App;
}

namespace muster {

// Adds the subcommand. When it was given on the command line, parsing runs it and `exit_code` is its result.
void AddCheckpointCommand(CLI::App& app, int& exit_code);

}  // namespace muster
