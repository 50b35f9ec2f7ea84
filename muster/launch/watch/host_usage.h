// What the tasks of a run on hosts use, as its supervisor hears it from the agents: kept in a small file of the run's
// folder, which `muster monitor` reads. Stateless; blocking.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/cluster/task_id.h"
#include "muster/launch/task/gpus_in_use.h"

namespace muster {

struct HostUsage {
  double cpu_seconds = 0;  // of all its processes, since this life of it began
  int64_t mem_bytes = 0;   // resident, of all its processes
  GpusInUse gpus;
  int restarts = 0;  // of the task, which tells its lives apart
  absl::Time when;   // when the supervisor heard it

  bool operator==(const HostUsage&) const = default;
};

// Replaces the file at once. A loss of power may leave an older one.
[[nodiscard]] absl::Status WriteHostUsage(const std::string& path, const std::map<TaskId, HostUsage>& usages);
// Returns nothing if there is no such file, or it isn't what WriteHostUsage writes.
std::map<TaskId, HostUsage> ReadHostUsage(const std::string& path);

}  // namespace muster
