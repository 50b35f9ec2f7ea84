#include "bench/support/shared_connections.h"

#include <chrono>
#include <csignal>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "bench/support/process.h"
#include "bench/support/whole_file.h"

namespace muster::bench {
namespace {

constexpr std::chrono::seconds kOpenPatience(60);

}  // namespace

SharedConnections::~SharedConnections() {
  for (const pid_t master : masters_) kill(master, SIGTERM);
  for (const pid_t master : masters_) WaitFor(master);
}

absl::Status SharedConnections::Open(int count) {
  const std::vector<std::string> names(hosts_.names().begin(), hosts_.names().begin() + count);
  for (const std::string& name : names)
    masters_.push_back(Start(hosts_.On("h0", {"ssh", "-F", hosts_.ssh_config(), "-o", "BatchMode=yes", "-M", "-S",
                                              SocketOf(name), "-N", "--", name}),
                             {}, "/dev/null"));
  for (const std::string& name : names)
    if (!AwaitFile(SocketOf(name), kOpenPatience))
      return absl::DeadlineExceededError(absl::StrCat("ssh has no connection to ", name, " that could be shared"));
  std::ofstream(ssh_config()) << "Host *\nControlPath " << SocketOf("%n") << "\nInclude " << hosts_.ssh_config()
                              << "\n";
  return absl::OkStatus();
}

}  // namespace muster::bench
