// `muster results [ID]`: shows the results of a grid's runs, sorted by a metric; as a table, JSON or a page.
#pragma once

namespace CLI {
class App;
}

namespace muster {

// Adds the subcommand. When it was given on the command line, parsing runs it and `exit_code` is its result.
void AddResultsCommand(CLI::App& app, int& exit_code);

}  // namespace muster
