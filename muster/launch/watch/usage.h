// Measures from outside how much of the machine tasks use: /proc, cgroups and nvidia-smi. Blocks briefly: one pass over
// /proc for all tasks, and up to two seconds if nvidia-smi hangs. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "muster/launch/registry/registry.h"
#include "muster/launch/watch/gpu_usage.h"
#include "muster/launch/watch/host_usage.h"
#include "muster/launch/watch/process_table.h"

namespace muster {

struct TaskUsage {
  std::optional<double> cpu_percent;  // of one core, summed over its processes; unset until there are two readings
  int64_t mem_bytes = 0;              // of all its processes: its cgroup's without cached files, otherwise resident
  int64_t mem_limit = 0;              // of the task, otherwise the machine's memory
  int gpus = 0;                       // found GPUs; without any, the next three are unset
  std::optional<double> gpu_percent;  // mean of its GPUs
  std::optional<int64_t> gpu_mem_bytes, gpu_mem_total;

  bool operator==(const TaskUsage&) const = default;
};

// Returns the memory of each of `pids`: all processes of the group that it leads, and their descendants, in one pass
// over /proc. 0 for a process that doesn't exist. Shared pages count once per process; a cgroup, if there is one, is
// exact.
std::map<pid_t, int64_t> ResidentBytesOf(const std::vector<pid_t>& pids, const std::string& proc = "/proc");

struct UsageSources {
  int64_t machine_mem_bytes = 0;  // for tasks of this machine without a limit
  std::string proc = "/proc";
  std::string gpu_program = "nvidia-smi";
};

class UsageReader {
 public:
  explicit UsageReader(UsageSources sources) : sources_(std::move(sources)) {}

  // Returns the usage of running tasks by name; call it repeatedly, a second apart say. A restarted task has no
  // cpu_percent until the second reading. `on_hosts`: of tasks that run on hosts, by the same names; how much memory
  // their host has is unknown; one that isn't there has no usage.
  std::map<std::string, TaskUsage> Read(const std::vector<std::pair<std::string, TaskRecord>>& tasks, absl::Time now,
                                        const std::map<std::string, HostUsage>& on_hosts = {});

 private:
  struct Before {
    int life;  // its pid here, or on a host the number of its restarts
    double cpu_seconds;
    absl::Time when;
    std::optional<double> percent = std::nullopt;  // since the reading before
  };

  std::optional<double> CpuPercent(const std::string& name, const Before& present);

  const UsageSources sources_;
  std::map<std::string, Before> before_;
};

// Returns the sums over all tasks. Tasks without limits share the machine's memory, so the limit is at most that.
TaskUsage TotalUsage(const std::map<std::string, TaskUsage>& tasks, int64_t machine_mem_bytes);

}  // namespace muster
