// Identifies a process so that a later one with the same pid isn't mistaken for it. Linux. Thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace muster {

struct ProcessIdentity {
  int64_t pid = 0;
  uint64_t start = 0;  // when it was started, in clock ticks since boot

  bool operator==(const ProcessIdentity&) const = default;
};

// Nullopt if no such process exists.
std::optional<ProcessIdentity> IdentifyProcess(pid_t pid);

// Kills the process with SIGKILL, which works on a stopped process, too. Returns true once it is gone with all its
// threads. False: it isn't gone yet (or this user may not kill it); call again.
bool EndProcess(const ProcessIdentity& process);

// The pid namespace of this process: numbers of processes and threads mean something only within one. 0 if the system
// doesn't tell.
uint64_t PidNamespace();

}  // namespace muster
