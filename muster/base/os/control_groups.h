// The control groups of this process, whose limits a container, a batch job or a systemd unit sets: where their folders
// are. Both versions: in version 2 one hierarchy has all controllers, in version 1 each has its own. Reads files of the
// kernel; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

// The folders of the groups of one hierarchy that limit this process.
struct ControlGroupFolders {
  bool is_first_version = false;
  // From the hierarchy's root down to this process's own group. In a container the process may see only the root, which
  // is then its own group: the other folders don't exist.
  std::vector<std::string> folders;
};

// Returns the hierarchies with `controller` ("cpu", "memory"), in the order of the kernel's list; that of version 2 is
// among them whether it has the controller or not. `proc`: "/proc"; `mount`: "/sys/fs/cgroup", which has version 2, or
// the hierarchies of version 1 in folders named by their controllers, as "cpu,cpuacct".
std::vector<ControlGroupFolders> ControlGroupsWith(std::string_view controller, const std::string& proc,
                                                   const std::string& mount);

}  // namespace muster
