// `muster rerun ID`: a new experiment with the file, the code and the parameters of another.
#pragma once

namespace CLI {
class App;
}

namespace muster {

// Adds the subcommand. When it was given on the command line, parsing runs it and `exit_code` is its result.
void AddRerunCommand(CLI::App& app, int& exit_code);

}  // namespace muster
