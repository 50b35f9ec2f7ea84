// `muster tensorboard [ID]`: runs the real TensorBoard on an experiment's output.
#pragma once

namespace CLI {
class App;
}

namespace muster {

// Adds the subcommand. When it was given on the command line, parsing runs it and `exit_code` is its result. Doesn't
// return if TensorBoard starts, because that replaces this process.
void AddTensorboardCommand(CLI::App& app, int& exit_code);

}  // namespace muster
