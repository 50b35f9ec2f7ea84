// A process, so named that a later one with the same number can't be taken for it. Linux. Thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace muster {

struct ProcessIdentity {
  int64_t pid = 0;
  uint64_t start = 0;  // when it was started, in clock ticks since the machine was

  bool operator==(const ProcessIdentity&) const = default;
};

// Nullopt: there is no such process.
std::optional<ProcessIdentity> IdentifyProcess(pid_t pid);

// Kills it with SIGKILL, which a stopped process obeys too. True: it is gone, with all its threads; false: it isn't yet
// (or can't be killed by this user), ask again.
bool EndProcess(const ProcessIdentity& process);

// Which pid namespace this process lives in: numbers of processes and threads mean something only within one. 0: the
// system doesn't say.
uint64_t PidNamespace();

}  // namespace muster
