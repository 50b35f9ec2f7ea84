// `muster device`: the canonical form of device strings, merged from left (outer) to right (inner), as a JSON string.
#pragma once

namespace CLI {
class App;
}

namespace muster {

// Adds the subcommand. When it was given on the command line, parsing runs it and `exit_code` is its result.
void AddDeviceCommand(CLI::App& app, int& exit_code);

}  // namespace muster
