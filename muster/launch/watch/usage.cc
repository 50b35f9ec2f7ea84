#include "muster/launch/watch/usage.h"

#include <algorithm>
#include <fstream>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace muster {
namespace {

// Returns the number in a cgroup's file: the only one, or the one after the word `key`.
std::optional<int64_t> CgroupNumber(const std::string& folder, const char* file, std::string_view key = {}) {
  std::ifstream lines(absl::StrCat(folder, "/", file));
  std::string word;
  int64_t number = 0;
  if (key.empty()) {
    if (lines >> number) return number;
    return std::nullopt;
  }
  while (lines >> word >> number)
    if (word == key) return number;
  return std::nullopt;
}

// Reads cgroup v2, otherwise v1's memory controller. Subtracts the cache of files read once, which the kernel would
// drop first, so that a task that reads its input doesn't seem to fill its memory.
std::optional<int64_t> CgroupMemory(const std::string& folder) {
  std::optional<int64_t> used = CgroupNumber(folder, "memory.current");
  std::optional<int64_t> cached = CgroupNumber(folder, "memory.stat", "inactive_file");
  if (!used.has_value()) {
    used = CgroupNumber(folder, "memory.usage_in_bytes");
    cached = CgroupNumber(folder, "memory.stat", "total_inactive_file");
  }
  if (!used.has_value()) return std::nullopt;
  return std::max<int64_t>(0, *used - cached.value_or(0));
}

std::optional<double> CgroupCpuSeconds(const std::string& folder) {
  if (const auto micros = CgroupNumber(folder, "cpu.stat", "usage_usec")) return static_cast<double>(*micros) / 1e6;
  if (const auto nanos = CgroupNumber(folder, "cpuacct.usage")) return static_cast<double>(*nanos) / 1e9;
  return std::nullopt;
}

void SetGpus(const GpusInUse& gpus, TaskUsage& usage) {
  usage.gpus = gpus.count;
  usage.gpu_percent = gpus.percent;
  usage.gpu_mem_bytes = gpus.mem_bytes;
  usage.gpu_mem_total = gpus.mem_total;
}

}  // namespace

std::map<pid_t, int64_t> ResidentBytesOf(const std::vector<pid_t>& pids, const std::string& proc) {
  std::map<pid_t, int64_t> bytes;
  for (const pid_t pid : pids) bytes[pid] = 0;
  for (const auto& [pid, sums] : SumsByLeader(ReadProcesses(proc), pids)) bytes[pid] = sums.resident_bytes;
  return bytes;
}

std::optional<double> UsageReader::CpuPercent(const std::string& name, const Before& present) {
  const auto [before, is_new] = before_.try_emplace(name, present);
  if (is_new) return std::nullopt;
  // Nothing new has been heard of a task on a host.
  if (before->second.life == present.life && before->second.when == present.when) return before->second.percent;
  const Before last = std::exchange(before->second, present);
  const double seconds = absl::ToDoubleSeconds(present.when - last.when);
  if (last.life != present.life || seconds <= 0) return std::nullopt;
  // Less than before if a process has gone whose time no process of the task has taken over.
  before->second.percent = std::max(0.0, (present.cpu_seconds - last.cpu_seconds) / seconds * 100);
  return before->second.percent;
}

std::map<std::string, TaskUsage> UsageReader::Read(const std::vector<std::pair<std::string, TaskRecord>>& tasks,
                                                   absl::Time now, const std::map<std::string, HostUsage>& on_hosts) {
  std::vector<pid_t> pids;
  bool any_gpu = false;
  for (const auto& [name, task] : tasks) {
    if (task.pid > 0) pids.push_back(task.pid);
    any_gpu |= !task.gpus.empty() && task.host.empty();
  }
  const std::map<pid_t, ProcessSums> sums = SumsByLeader(ReadProcesses(sources_.proc), pids);
  const std::vector<GpuUsage> gpus = any_gpu ? ReadGpuUsage(sources_.gpu_program) : std::vector<GpuUsage>();
  std::map<std::string, TaskUsage> usages;
  for (const auto& [name, task] : tasks) {
    if (!task.host.empty()) {
      const auto heard = on_hosts.find(name);
      if (heard == on_hosts.end()) continue;
      usages[name] = {
          .cpu_percent = CpuPercent(name, {heard->second.restarts, heard->second.cpu_seconds, heard->second.when}),
          .mem_bytes = heard->second.mem_bytes,
          .mem_limit = task.mem_limit};
      SetGpus(heard->second.gpus, usages[name]);
      continue;
    }
    const auto found = sums.find(task.pid);
    const ProcessSums of_processes = found == sums.end() ? ProcessSums() : found->second;
    std::optional<int64_t> mem;
    std::optional<double> cpu_seconds;
    if (!task.cgroup.empty()) {
      mem = CgroupMemory(task.cgroup);
      cpu_seconds = CgroupCpuSeconds(task.cgroup);
    }
    TaskUsage& usage = usages[name];
    usage.mem_bytes = mem.value_or(of_processes.resident_bytes);
    usage.mem_limit = task.mem_limit > 0 ? task.mem_limit : sources_.machine_mem_bytes;
    usage.cpu_percent = CpuPercent(name, {task.pid, cpu_seconds.value_or(of_processes.cpu_seconds), now});
    SetGpus(SumGpus(task.gpus, gpus), usage);
  }
  std::erase_if(before_, [&usages](const auto& before) { return !usages.contains(before.first); });
  return usages;
}

TaskUsage TotalUsage(const std::map<std::string, TaskUsage>& tasks, int64_t machine_mem_bytes) {
  TaskUsage total;
  double gpu_percent = 0;
  int with_percent = 0;
  const auto add = [](const auto& some, auto& sum) {
    if (some.has_value()) sum = sum.value_or(0) + *some;
  };
  for (const auto& [name, usage] : tasks) {
    add(usage.cpu_percent, total.cpu_percent);
    total.mem_bytes += usage.mem_bytes;
    total.mem_limit += usage.mem_limit;
    total.gpus += usage.gpus;
    if (usage.gpu_percent.has_value()) {
      gpu_percent += *usage.gpu_percent * usage.gpus;
      with_percent += usage.gpus;
    }
    add(usage.gpu_mem_bytes, total.gpu_mem_bytes);
    add(usage.gpu_mem_total, total.gpu_mem_total);
  }
  if (with_percent > 0) total.gpu_percent = gpu_percent / with_percent;
  if (machine_mem_bytes > 0) total.mem_limit = std::min(total.mem_limit, machine_mem_bytes);
  if (tasks.empty()) total.mem_limit = machine_mem_bytes;
  return total;
}

}  // namespace muster
