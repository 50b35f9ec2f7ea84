// How much more memory this process may take: what the machine has to spare, or less if a control group (a container, a
// batch job, a systemd unit) allows less. Reads files of the kernel; thread-safe.
#pragma once

#include <cstdint>
#include <string>

namespace muster {

struct AvailableMemory {
  uint64_t bytes = 0;       // 0: the system doesn't say
  bool of_a_group = false;  // a control group's limit is the tighter one
};

// `root`: where the machine's folders lie, for tests. Knows both versions of control groups.
AvailableMemory MemoryToTake(const std::string& root = "/");

}  // namespace muster
