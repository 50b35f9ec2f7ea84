// `muster gc`: removes from MUSTER_HOME what no experiment needs any more.
#pragma once

namespace CLI {
class App;
}

namespace muster {

void AddGcCommand(CLI::App& app, int& exit_code);

}  // namespace muster
