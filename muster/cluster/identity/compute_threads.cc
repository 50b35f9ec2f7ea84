#include "muster/cluster/identity/compute_threads.h"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "absl/strings/match.h"
#include "muster/cluster/address.h"

namespace muster {
namespace {

// Returns "" for an address of unknown form.
std::string HostOf(const std::string& address) {
  const auto parsed = ParseHostPort(address);
  if (!parsed.ok()) return "";
  const bool own = parsed->host == "localhost" || parsed->host == "::1" || absl::StartsWith(parsed->host, "127.");
  return own ? "localhost" : parsed->host;
}

}  // namespace

int AvailableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1U, std::thread::hardware_concurrency());  // more cores than a cpu_set_t has bits
}

ComputeThreads ComputeThreadsOf(const TaskConfig& task, int cores) {
  ComputeThreads here{.threads = cores};
  const std::string host = HostOf(task.master());
  if (host.empty()) return here;
  here.computing = 0;
  for (const TaskId& other : task.cluster().AllTasks()) {
    if (HostOf(task.cluster().TaskAddress(other).value_or("")) != host) continue;
    ++(other.job == kPsJob ? here.ps : here.computing);
  }
  here.computing = std::max(1, here.computing);
  here.threads = std::max(1, (cores - here.ps) / here.computing);
  return here;
}

}  // namespace muster
