#include "muster/base/os/processors.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/base/os/control_groups.h"

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
  double lowest = 0;
  for (const ControlGroupFolders& group : ControlGroupsWith("cpu", folders.proc, folders.cgroups)) {
    for (const std::string& folder : group.folders) {
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
