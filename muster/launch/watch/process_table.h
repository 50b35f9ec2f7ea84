// The machine's processes, from one pass over /proc, and what each task's processes use together. A pass reads one
// small file per process, some tens of microseconds each, and serves all watched tasks. Functions without state,
// thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace muster {

struct ProcessRow {
  pid_t pid = 0, parent = 0, group = 0, session = 0;
  double cpu_seconds = 0;  // user and system, with those of children that have ended and been waited for
  int64_t resident_bytes = 0;

  bool operator==(const ProcessRow&) const = default;
};

// Returns the readable processes; one that ends meanwhile may be missing. `proc`: "/proc", or a folder like it.
std::vector<ProcessRow> ReadProcesses(const std::string& proc);

struct ProcessSums {
  double cpu_seconds = 0;
  int64_t resident_bytes = 0;  // shared memory counts once per process

  bool operator==(const ProcessSums&) const = default;
};

// Sums for each of `leaders`: itself, the processes of the group or session that it leads, and the descendants of all
// of these. A leader below another one doesn't count for that one. Leaders without processes are missing.
std::map<pid_t, ProcessSums> SumsByLeader(const std::vector<ProcessRow>& processes, const std::vector<pid_t>& leaders);

}  // namespace muster
