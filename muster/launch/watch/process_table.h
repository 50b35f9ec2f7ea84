// The processes of the machine, from one pass over /proc, and what those of a task use together. A pass is one small
// file a process, some tens of microseconds each: one pass serves all tasks that are watched. Functions without state,
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

// Of those that can be read; one that ends meanwhile may be missing. `proc`: "/proc", or a folder like it.
std::vector<ProcessRow> ReadProcesses(const std::string& proc);

struct ProcessSums {
  double cpu_seconds = 0;
  int64_t resident_bytes = 0;  // memory that processes share is counted for each

  bool operator==(const ProcessSums&) const = default;
};

// For each of `leaders`: itself, whoever is in the group or session that it leads, and the descendants of all of these.
// A leader below another one is not counted for that one. Those of which there is nothing are missing.
std::map<pid_t, ProcessSums> SumsByLeader(const std::vector<ProcessRow>& processes, const std::vector<pid_t>& leaders);

}  // namespace muster
