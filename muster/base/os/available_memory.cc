#include "muster/base/os/available_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace muster {
namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();
// Version 1 writes "no limit" as a number of whole pages close to the largest.
constexpr uint64_t kLeastNoLimit = uint64_t{1} << 62;

// The names of one version of control groups.
struct GroupFiles {
  std::string folder;  // where the hierarchy lies
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
  const uint64_t kept = used - std::min(used, StatIn(folder + "memory.stat", files.reclaimable));
  return *limit - std::min(*limit, kept);
}

// The hierarchies in which this process has a group with a memory limit, each with the group's path, "/a/b".
std::vector<std::pair<GroupFiles, std::string>> GroupsOf(const std::string& root) {
  const GroupFiles second{root + "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};
  const GroupFiles first{root + "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                         "total_inactive_file"};
  std::vector<std::pair<GroupFiles, std::string>> groups;
  std::ifstream list(root + "proc/self/cgroup");
  for (std::string line; std::getline(list, line);) {  // "0::/a/b", or of version 1 "4:memory:/a/b"
    const size_t names = line.find(':');
    const size_t path = names == std::string::npos ? names : line.find(':', names + 1);
    if (path == std::string::npos) continue;
    const std::string controllers = "," + line.substr(names + 1, path - names - 1) + ",";
    if (controllers == ",,") groups.emplace_back(second, line.substr(path + 1));
    if (controllers.find(",memory,") != std::string::npos) groups.emplace_back(first, line.substr(path + 1));
  }
  return groups;
}

}  // namespace

AvailableMemory MemoryToTake(const std::string& root) {
  AvailableMemory available{.bytes = AvailableOfMachine(root)};
  for (const auto& [files, group] : GroupsOf(root)) {
    // Each group above limits, too. In a container the path may be the host's, and only the topmost folder is there.
    for (std::string path = group == "/" ? "" : group;; path.resize(path.rfind('/'))) {
      const uint64_t left = LeftIn(files.folder + path + "/", files);
      if (left != kNoLimit && (available.bytes == 0 || left < available.bytes))
        available = {.bytes = std::max<uint64_t>(left, 1), .of_a_group = true};
      if (path.empty() || path.find('/') == std::string::npos) break;
    }
  }
  return available;
}

}  // namespace muster
