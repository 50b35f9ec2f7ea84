// How --help prints an option: the word for its value, and its description. What goes with what is said in
// descriptions.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace muster {

// For `app` and all subcommands that are added to it later.
void UseHelpFormat(CLI::App& app);

// Returns the names of an app's commands that --help shows.
std::vector<std::string> VisibleCommands(const CLI::App& app);

}  // namespace muster
