#include "muster/base/os/available_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>

#include "muster/base/os/control_groups.h"

namespace muster {
namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();
// Version 1 writes "no limit" as a number of whole pages close to the largest.
constexpr uint64_t kLeastNoLimit = uint64_t{1} << 62;

// The names of one version of control groups.
struct GroupFiles {
  const char* limit;
  const char* used;
  const char* reclaimable;  // in memory.stat: the file cache counts as used, but goes when memory is wanted
};

uint64_t AvailableOfMachine(const std::string& root) {
  std::ifstream meminfo(root + "proc/meminfo");
  std::string name, unit;
  uint64_t kilobytes = 0;
  while (meminfo >> name >> kilobytes) {
    std::getline(meminfo, unit);
    if (name == "MemAvailable:") return kilobytes << 10;
  }
  return 0;
}

// Returns nullopt for "max" and for a missing file.
std::optional<uint64_t> NumberIn(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  if (!(file >> number)) return std::nullopt;
  return number;
}

uint64_t StatIn(const std::string& path, std::string_view wanted) {
  std::ifstream file(path);
  std::string name;
  for (uint64_t number = 0; file >> name >> number;)
    if (name == wanted) return number;
  return 0;
}

uint64_t LeftIn(const std::string& folder, const GroupFiles& files) {
  const std::optional<uint64_t> limit = NumberIn(folder + files.limit);
  if (!limit || *limit >= kLeastNoLimit) return kNoLimit;
  const uint64_t used = NumberIn(folder + files.used).value_or(0);
  const uint64_t kept = used - std::min(used, StatIn(folder + "/memory.stat", files.reclaimable));
  return *limit - std::min(*limit, kept);
}

// The second number of statm, in pages: what is in memory, the part of shared memory that this process uses included.
uint64_t ResidentBytes(const std::string& root) {
  std::ifstream statm(root + "proc/self/statm");
  uint64_t all = 0, resident = 0;
  return statm >> all >> resident ? resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) : 0;
}

constexpr GroupFiles kFirst{"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file"};
constexpr GroupFiles kSecond{"/memory.max", "/memory.current", "inactive_file"};

}  // namespace

uint64_t ResidentLimit() {
  rlimit limit{};
  return getrlimit(RLIMIT_RSS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : 0;
}

void SetResidentLimit(uint64_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_RSS, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(bytes, limit.rlim_max);
  setrlimit(RLIMIT_RSS, &limit);
}

AvailableMemory MemoryToTake(const std::string& root, uint64_t limit) {
  AvailableMemory available{.bytes = AvailableOfMachine(root)};
  for (const ControlGroupFolders& group : ControlGroupsWith("memory", root + "proc", root + "sys/fs/cgroup")) {
    for (const std::string& folder : group.folders) {  // each group above limits, too
      const uint64_t left = LeftIn(folder, group.is_first_version ? kFirst : kSecond);
      if (left != kNoLimit && (available.bytes == 0 || left < available.bytes))
        available = {.bytes = std::max<uint64_t>(left, 1), .of_a_group = true};
    }
  }
  if (limit == 0) return available;
  const uint64_t left = limit - std::min(limit, ResidentBytes(root));
  if (available.bytes == 0 || left < available.bytes)
    available = {.bytes = std::max<uint64_t>(left, 1), .of_limit = limit};
  return available;
}

}  // namespace muster
