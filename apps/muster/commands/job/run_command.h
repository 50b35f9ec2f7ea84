// `muster run`: a cluster on this machine, in the foreground.
#pragma once

namespace CLI {
class App;
}

namespace muster {

// Adds the subcommand. When it was given on the command line, parsing runs it and sets `exit_code` to the chief's.
void AddRunCommand(CLI::App& app, int& exit_code);

}  // namespace muster
