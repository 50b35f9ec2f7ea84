// `muster ps`: a stand-alone parameter server without torch, and requests to running ones.
#pragma once

namespace CLI {
class App;
}

namespace muster {

// Adds the subcommand. When it was given on the command line, parsing runs it and `exit_code` is its result.
void AddPsCommand(CLI::App& app, int& exit_code);

}  // namespace muster
