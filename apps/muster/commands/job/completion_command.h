// `muster completion SHELL`: what makes bash, zsh or fish complete this command's words, made from its own table.
#pragma once

namespace CLI {
class App;
}

namespace muster {

// Adds the subcommand. When it was given on the command line, parsing runs it and `exit_code` is its result.
void AddCompletionCommand(CLI::App& app, int& exit_code);

}  // namespace muster
