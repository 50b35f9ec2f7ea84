// Connections of ssh from h0 to simulated hosts that other ssh processes can share, as those of a user with
// ControlMaster and ControlPersist: a run over them needs no login. They end with this object. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/process/testing/simulated_hosts.h"

namespace muster::bench {

class SharedConnections {
 public:
  // Borrows `hosts`.
  explicit SharedConnections(const SimulatedHosts& hosts) : hosts_(hosts) {}
  ~SharedConnections();
  SharedConnections(const SharedConnections&) = delete;
  SharedConnections& operator=(const SharedConnections&) = delete;

  // Connects to the first `count` hosts and blocks until all can be shared. DeadlineExceeded names one that can't.
  absl::Status Open(int count);
  // A file for `ssh -F` that uses them.
  std::string ssh_config() const { return hosts_.shared() + "/shared_ssh_config"; }

 private:
  std::string SocketOf(const std::string& host) const { return hosts_.shared() + "/" + host + ".ssh"; }

  const SimulatedHosts& hosts_;
  std::vector<pid_t> masters_;
};

}  // namespace muster::bench
