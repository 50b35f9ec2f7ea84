// A scheduler of three scripts for tests of `on: command`: it hands out the hosts that it is asked for, remembers which
// are held, and gets to each by its namespaces, as `docker exec` gets into a container. Used by one thread.
#pragma once

#include <string>
#include <vector>

#include "tests/process/testing/simulated_hosts.h"

namespace muster {

class HostCommands {
 public:
  // Borrows the hosts, which must outlive it.
  explicit HostCommands(const SimulatedHosts& hosts) : hosts_(hosts), folder_(hosts.shared() + "/commands") {}

  // Writes the scripts, which know the hosts as they are now.
  void Write() const;
  // Returns where they are: `acquire FOLDER HOST…`, `enter HOST WORD…`, `release FOLDER JOB`.
  const std::string& folder() const { return folder_; }
  // Returns the lines of muster.yml for a run that gets these hosts.
  std::string Lines(const std::vector<std::string>& hosts) const;
  // Fails if hosts are held that nobody has released.
  void ExpectAllGivenBack() const;

 private:
  std::string File(const std::string& name) const { return folder_ + "/" + name; }
  void WriteScript(const std::string& name, const std::string& lines) const;

  const SimulatedHosts& hosts_;
  const std::string folder_;
};

}  // namespace muster
