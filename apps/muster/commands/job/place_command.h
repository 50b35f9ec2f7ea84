// `muster place`: which parameter server each variable of a file would go to, and the load of each, as JSON.
#pragma once

namespace CLI {
class App;
}

namespace muster {

// Adds the subcommand. When it was given on the command line, parsing runs it and `exit_code` is its result.
void AddPlaceCommand(CLI::App& app, int& exit_code);

}  // namespace muster
