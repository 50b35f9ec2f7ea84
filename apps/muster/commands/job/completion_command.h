// `muster completion SHELL`: prints a completion script for bash, zsh or fish, made from the table of commands.
#pragma once

namespace CLI {
class App;
}

namespace muster {

// Adds the subcommand. When it was given on the command line, parsing runs it and `exit_code` is its result.
void AddCompletionCommand(CLI::App& app, int& exit_code);

}  // namespace muster
