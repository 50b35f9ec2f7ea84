#include "muster/base/os/processors.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace muster {
namespace {

// Returns the numbers of a small file; "max" and what is no number end them.
std::vector<double> NumbersIn(const std::string& path) {
  std::ifstream file(path);
  std::vector<double> numbers;
  for (std::string word; file >> word;) {
    double number = 0;
    if (!absl::SimpleAtod(word, &number)) break;
    numbers.push_back(number);
  }
  return numbers;
}

// Returns `root` and every folder on the way to `below`, which begins with a slash. In a container the process may see
// only the last of them, as the root.
std::vector<std::string> FoldersDownTo(const std::string& root, const std::string& below) {
  std::vector<std::string> folders = {root};
  for (const absl::string_view name : absl::StrSplit(below, '/', absl::SkipEmpty()))
    folders.push_back(absl::StrCat(folders.back(), "/", name));
  return folders;
}

// Returns the quota in processors of a group's folder: version 2, then 1. 0: it has none.
double QuotaOf(const std::string& folder) {
  const std::vector<double> max = NumbersIn(folder + "/cpu.max");  // "200000 100000": µs of every 100000 µs
  if (max.size() == 2 && max[0] > 0 && max[1] > 0) return max[0] / max[1];
  const std::vector<double> quota = NumbersIn(folder + "/cpu.cfs_quota_us");  // -1: none
  const std::vector<double> period = NumbersIn(folder + "/cpu.cfs_period_us");
  return quota.size() == 1 && period.size() == 1 && quota[0] > 0 && period[0] > 0 ? quota[0] / period[0] : 0;
}

// Returns the lowest quota of this process's groups and those above them; 0: there is none.
double LowestQuota(const ProcessorFolders& folders) {
  std::ifstream file(folders.proc + "/self/cgroup");
  double lowest = 0;
  for (std::string line; std::getline(file, line);) {
    // "0::/path" (version 2) or "4:cpu,cpuacct:/path".
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    const bool has_cpu = std::find(controllers.begin(), controllers.end(), "cpu") != controllers.end();
    if (parts[0] != "0" && !has_cpu) continue;
    const std::string root = has_cpu ? absl::StrCat(folders.cgroups, "/", parts[1]) : folders.cgroups;
    for (const std::string& folder : FoldersDownTo(root, parts[2])) {
      const double quota = QuotaOf(folder);
      if (quota > 0 && (lowest == 0 || quota < lowest)) lowest = quota;
    }
  }
  return lowest;
}

}  // namespace

Processors UsableProcessors(std::optional<int> job_limit, const ProcessorFolders& folders) {
  Processors usable = {.count = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)), .why = "of this machine"};
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  // It fails on a machine with more processors than a cpu_set_t has bits.
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) < usable.count)
    usable = {.count = CPU_COUNT(&allowed), .why = "by this process's affinity mask"};
  const double quota = LowestQuota(folders);
  if (quota > 0 && std::ceil(quota) < usable.count)
    usable = {.count = static_cast<int>(std::ceil(quota)),
              .why = absl::StrCat("by the control group's quota of ", quota)};
  if (job_limit && *job_limit < usable.count) usable = {.count = *job_limit, .why = "by MUSTER_PROCESSORS"};
  usable.count = std::max(1, usable.count);
  return usable;
}

}  // namespace muster
