// `muster tensorboard [ID]`: the real TensorBoard on what an experiment has written.
#pragma once

namespace CLI {
class App;
}

namespace muster {

// Adds the subcommand. When it was given on the command line, parsing runs it (and doesn't return if TensorBoard could
// be started: it takes this process's place) and `exit_code` is its result.
void AddTensorboardCommand(CLI::App& app, int& exit_code);

}  // namespace muster
