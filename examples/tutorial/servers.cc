// The program of docs/tutorial/servers.md: what a server knows about itself.
#include <muster/muster.h>

#include <iostream>

#include "absl/strings/str_join.h"

namespace {

// [describe]
void Describe(const muster::Server& server) {
  std::cout << server.ServerDef() << "target '" << server.Target() << "'\n"
            << "computes on " << absl::StrJoin(server.Devices(), ", ") << "\n"
            << std::flush;
}
// [/describe]

}  // namespace

int main(int argc, char** argv) {
  auto task = muster::TaskConfig::FromWholeCommandLine(argc, argv);
  // [local]
  auto local = muster::Server::CreateLocal();
  Describe(*local);
  // [/local]
  if (task.cluster().empty()) return 0;
  // [server]
  muster::Server server(task);
  Describe(server);
  if (task.is_ps()) return server.Join();
  // [/server]
}
