// How much of the machine tasks use: /proc, cgroups and nvidia-smi, read from outside. Blocking but quick. Not
// thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/launch/registry/registry.h"

namespace muster {

struct TaskUsage {
  std::optional<double> cpu_percent;  // of one core, summed over its processes; unset until there are two readings
  int64_t mem_bytes = 0;  // resident, of all its processes (shared memory counted once by cgroups, else often)
  int64_t mem_limit = 0;  // of the task, else the machine's memory
  std::optional<double> gpu_percent;  // mean of its GPUs
  std::optional<int64_t> gpu_mem_bytes, gpu_mem_total;
};

// What is read of a task's own programs (framework muster) from its status page.
struct TaskProgress {
  std::optional<double> steps_per_second, loss, staleness;
  std::optional<int64_t> step;
};

// All processes of the group that `pid` leads, and their descendants.
int64_t ResidentBytes(pid_t pid);

class UsageReader {
 public:
  // `proc`: "/proc".
  explicit UsageReader(std::string proc = "/proc");
  // Of tasks that run; call it again and again, a second apart say.
  std::map<std::string, TaskUsage> Read(const std::vector<std::pair<std::string, TaskRecord>>& tasks, absl::Time now);

 private:
  struct Before {
    int64_t ticks;
    absl::Time when;
  };
  const std::string proc_;
  std::map<std::string, Before> before_;
};

// Unset fields where there is no page or it doesn't answer within 200 ms.
TaskProgress ReadProgress(const std::string& status_address);

}  // namespace muster
