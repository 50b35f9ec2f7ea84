// How much more memory this process may take: what the machine has to spare, or less if a control group (a container, a
// batch job, a systemd unit) or a limit of its own allows less. Reads files of the kernel; thread-safe.
#pragma once

#include <cstdint>
#include <string>

namespace muster {

struct AvailableMemory {
  uint64_t bytes = 0;       // 0: the system doesn't say
  bool of_a_group = false;  // a control group's limit is the tightest one
  uint64_t of_limit = 0;    // the process's own limit, if that is the tightest one; 0: it isn't
};

// The soft limit RLIMIT_RSS of this process, in bytes; 0: none. Linux itself doesn't keep it. A launcher says by it
// what a task may have, as there may be no control group for the task; so does `ulimit -m`.
uint64_t ResidentLimit();
// Sets it for this process and what it starts, as far as the hard limit allows. Async-signal-safe.
void SetResidentLimit(uint64_t bytes);

// `root`: where the machine's folders lie, for tests. `limit`: of this process, bytes; 0: none. Knows both versions of
// control groups.
AvailableMemory MemoryToTake(const std::string& root = "/", uint64_t limit = ResidentLimit());

}  // namespace muster
