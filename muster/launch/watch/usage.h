// How much of the machine tasks use: /proc, cgroups and nvidia-smi, read from outside. Blocking but quick: one pass
// over /proc for all tasks, and up to two seconds where nvidia-smi hangs. Not thread-safe.
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
#include "muster/launch/watch/process_table.h"

namespace muster {

struct TaskUsage {
  std::optional<double> cpu_percent;  // of one core, summed over its processes; unset until there are two readings
  int64_t mem_bytes = 0;              // of all its processes: its cgroup's without cached files, else resident
  int64_t mem_limit = 0;              // of the task, else the machine's memory
  int gpus = 0;                       // that were found; the next three are unset without
  std::optional<double> gpu_percent;  // mean of its GPUs
  std::optional<int64_t> gpu_mem_bytes, gpu_mem_total;

  bool operator==(const TaskUsage&) const = default;
};

// Memory of each of `pids`: all processes of the group that it leads, and their descendants, in one pass over /proc. 0
// for one that there isn't. Pages that processes share are counted for each: a cgroup, where there is one, is exact.
std::map<pid_t, int64_t> ResidentBytesOf(const std::vector<pid_t>& pids, const std::string& proc = "/proc");

struct UsageSources {
  int64_t machine_mem_bytes = 0;  // of tasks without a limit
  std::string proc = "/proc";
  std::string gpu_program = "nvidia-smi";
};

class UsageReader {
 public:
  explicit UsageReader(UsageSources sources) : sources_(std::move(sources)) {}

  // Of tasks that run, by their names; call it again and again, a second apart say. A task that was started again has
  // no cpu_percent until the reading after.
  std::map<std::string, TaskUsage> Read(const std::vector<std::pair<std::string, TaskRecord>>& tasks, absl::Time now);

 private:
  struct Before {
    pid_t pid;
    double cpu_seconds;
    absl::Time when;
  };

  std::optional<double> CpuPercent(const std::string& name, const Before& present);

  const UsageSources sources_;
  std::map<std::string, Before> before_;
};

// Of all together: what they use summed. Tasks without limits of their own share the machine's memory, so it is the
// limit as soon as the sum of limits is above it.
TaskUsage TotalUsage(const std::map<std::string, TaskUsage>& tasks, int64_t machine_mem_bytes);

}  // namespace muster
