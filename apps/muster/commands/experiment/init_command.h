// `muster init`: writes a commented muster.yml as a start.
#pragma once

namespace CLI {
class App;
}

namespace muster {

// Adds the subcommand. When it was given on the command line, parsing runs it and `exit_code` is its result.
void AddInitCommand(CLI::App& app, int& exit_code);

}  // namespace muster
