// How many processors this process may use: what the machine has, less what an affinity mask (taskset, a batch system),
// a control group's quota (a container) or the job's own limit takes away. More computing threads than processors make
// each other wait. Linux. Thread-safe.
#pragma once

#include <optional>
#include <string>

namespace muster {

struct Processors {
  int count = 1;
  std::string why;  // "of this machine", "by the control group's quota of 1.5"
};

// The folders from which a process's limits are read.
struct ProcessorFolders {
  std::string proc = "/proc";
  std::string cgroups = "/sys/fs/cgroup";  // of version 2, and above the controllers' folders of version 1
};

// Returns the least of all limits, at least 1. `job_limit`: what the user gives this job (MUSTER_PROCESSORS). A quota
// counts as the next whole number of processors; an unreadable limit counts as none.
Processors UsableProcessors(std::optional<int> job_limit = std::nullopt, const ProcessorFolders& folders = {});

}  // namespace muster
