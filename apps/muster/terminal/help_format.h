// How --help prints an option: the word for its value, and its description. What goes with what is said in
// descriptions.
#pragma once

namespace CLI {
class App;
}

namespace muster {

// For `app` and all subcommands that are added to it later.
void UseHelpFormat(CLI::App& app);

}  // namespace muster
