// `muster gc`: removes what no experiment needs any more from MUSTER_HOME.
#pragma once

namespace CLI {
class App;
}

namespace muster {

void AddGcCommand(CLI::App& app, int& exit_code);

}  // namespace muster
