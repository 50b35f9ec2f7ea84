#include "muster/launch/backends/local/run_processes.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <ctime>
#include <functional>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

#include "muster/launch/backends/local/guard.h"
#include "muster/launch/backends/local/kernel_file.h"
#include "muster/launch/system/pid_fd.h"
#include "muster/launch/system/process_mark.h"
#include "muster/launch/task/task_environment.h"

namespace muster {
namespace {

// A killed process is gone within milliseconds unless it hangs on a broken disk or network; then it is left behind.
constexpr int kGoneWithinMs = 10000;

// Returns field `number` of a process's stat file, counted as in proc(5), from the state (3) on.
std::string StatField(const std::string& folder, int number) {
  const std::string line = ReadKernelFile(folder + "/stat").value_or("");
  const size_t name_end = line.rfind(')');  // the name before it may contain anything
  if (name_end == std::string::npos) return "";
  std::istringstream rest(line.substr(name_end + 1));
  std::string field;
  for (int i = 3; i <= number; ++i) rest >> field;
  return field;
}

// Returns whether a process is just executing another program (execve): it has memory, but for a moment no place for
// its environment. A zombie or a kernel thread has no memory; one that was started without any variables has the place.
bool IsExecuting(const std::string& folder) {
  constexpr int kEnvironmentBegins = 50;
  return !ReadKernelFile(folder + "/statm").value_or("0 ").starts_with("0 ") &&
         StatField(folder, kEnvironmentBegins) == "0";
}

// Returns the environment of a process by its folder below /proc. An environment that this user may not read is empty.
// Only open tells that, because access always permits the superuser of a container.
std::string EnvironmentOfProcess(const std::string& folder) {
  constexpr int kLooks = 1000;  // where processors are scarce, that takes its time
  constexpr timespec kPause = {.tv_sec = 0, .tv_nsec = 1'000'000};
  for (int look = 1;; ++look) {
    const std::optional<std::string> environment = ReadKernelFile(folder + "/environ");
    if (!environment.has_value()) return "";
    if (!environment->empty() || look == kLooks) return *environment;
    // It may have got its environment between the two looks.
    if (!IsExecuting(folder)) return ReadKernelFile(folder + "/environ").value_or("");
    nanosleep(&kPause, nullptr);
  }
}

// Returns the value of a variable in the environment of a process; empty without it.
std::string VariableOf(const std::string& folder, const std::string& name) {
  const std::string beginning = name + "=";
  const std::string environment = EnvironmentOfProcess(folder);
  for (size_t at = 0; at < environment.size();) {
    const size_t end = std::min(environment.find('\0', at), environment.size());
    const std::string_view variable = std::string_view(environment).substr(at, end - at);
    if (variable.starts_with(beginning)) return std::string(variable.substr(beginning.size()));
    at = end + 1;
  }
  return "";
}

// Returns whether a process has the mark, and isn't a zombie, which has no memory.
bool HasMark(const std::string& folder, rlim_t mark) {
  return MarkIn(ReadKernelFile(folder + "/limits").value_or("")) == mark &&
         !ReadKernelFile(folder + "/statm").value_or("0 ").starts_with("0 ");
}

// Returns whether a process may be this user's. The superuser's task may have become another user.
bool MayBeOwn(const std::string& folder) {
  const uid_t user = geteuid();
  struct stat info;
  return user == 0 || (stat(folder.c_str(), &info) == 0 && info.st_uid == user);
}

// Parses proc(5): "PID (NAME) STATE PARENT GROUP …". NAME may contain anything; field 22 is the start time. Returns the
// group with its process.
std::optional<std::pair<pid_t, GroupProcess>> WithItsGroup(pid_t pid, const std::string& stat_file) {
  const std::string line = ReadKernelFile(stat_file).value_or("");
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream rest(line.substr(name_end + 1));
  char state = 'X';
  pid_t parent = 0, group = 0;
  rest >> state >> parent >> group;
  if (state == 'Z' || state == 'X') return std::nullopt;
  GroupProcess process = {.pid = pid, .started = 0};
  for (int field = 6; field <= 22; ++field) rest >> process.started;
  if (rest.fail()) return std::nullopt;
  return std::pair{group, process};
}

void ForEachProcess(const std::function<void(pid_t pid, const std::string& folder)>& take) {
  DIR* directory = opendir("/proc");
  if (directory == nullptr) return;
  while (const dirent* entry = readdir(directory)) {
    pid_t pid = 0;
    const char* end = entry->d_name + std::strlen(entry->d_name);
    if (std::from_chars(entry->d_name, end, pid).ptr == end) take(pid, std::string("/proc/") + entry->d_name);
  }
  closedir(directory);
}

// Returns whether a process has a SIGKILL that it hasn't taken yet, as on a busy machine. (The kernel makes one of each
// signal that ends a process at once.)
bool IsBeingKilled(pid_t pid) {
  const std::string status = ReadKernelFile("/proc/" + std::to_string(pid) + "/status").value_or("");
  for (const std::string_view name : {"\nSigPnd:\t", "\nShdPnd:\t"}) {
    const size_t at = status.find(name);
    if (at == std::string::npos) continue;
    uint64_t pending = 0;
    std::from_chars(status.data() + at + name.size(), status.data() + status.size(), pending, 16);
    if ((pending >> (SIGKILL - 1) & 1) != 0) return true;
  }
  return false;
}

// What tells whether a process is meant, by its folder below /proc.
using IsMeant = std::function<bool(const std::string& folder)>;

// Kills through a pidfd, so that a later process with the same number isn't hit: `is_meant` is asked again once the
// pidfd holds the process. Waits for its end.
bool Kill(pid_t pid, const IsMeant& is_meant) {
  const int fd = OpenPidFd(pid);
  if (fd < 0) return false;
  const bool still = is_meant("/proc/" + std::to_string(pid));
  if (still && SignalPidFd(fd, SIGKILL) == 0) {
    pollfd gone = {fd, POLLIN, 0};
    poll(&gone, 1, kGoneWithinMs);
  }
  close(fd);
  return still;
}

int KillAll(const IsMeant& is_meant) {
  std::set<pid_t> killed;
  int left_behind = 0;
  for (bool found_more = true; found_more;) {
    found_more = false;
    std::vector<pid_t> found;
    ForEachProcess([&](pid_t pid, const std::string& folder) {
      if (MayBeOwn(folder) && is_meant(folder)) found.push_back(pid);
    });
    for (const pid_t pid : found) {
      const bool is_dying = IsBeingKilled(pid);
      if (killed.count(pid) > 0 || !Kill(pid, is_meant)) continue;
      killed.insert(pid);
      if (!is_dying) ++left_behind;
      found_more = true;
    }
  }
  return left_behind;
}

}  // namespace

std::vector<pid_t> ProcessesOfRun(const std::string& run_id) {
  const auto found = ProcessesOfRuns({run_id});
  return found.empty() ? std::vector<pid_t>() : found.begin()->second;
}

std::map<std::string, std::vector<pid_t>> ProcessesOfRuns(const std::set<std::string>& run_ids) {
  std::map<std::string, std::vector<pid_t>> found;
  ForEachProcess([&](pid_t pid, const std::string& folder) {
    if (!MayBeOwn(folder)) return;
    const std::string run_id = VariableOf(folder, kRunIdVariable);
    if (run_ids.contains(run_id)) found[run_id].push_back(pid);
  });
  return found;
}

void AwaitGuard(const std::string& run_id) {
  const std::string title = Guard::Title(run_id);
  ForEachProcess([&](pid_t pid, const std::string& folder) {
    if (!MayBeOwn(folder) || ReadKernelFile(folder + "/cmdline").value_or("").substr(0, title.size()) != title) return;
    pollfd gone = {OpenPidFd(pid), POLLIN, 0};
    if (gone.fd < 0) return;
    poll(&gone, 1, kGoneWithinMs);
    close(gone.fd);
  });
}

ProcessGroups ReadProcessGroups() {
  ProcessGroups found;
  found.began = TicksSinceBoot();
  ForEachProcess([&](pid_t pid, const std::string& folder) {
    if (const auto process = WithItsGroup(pid, folder + "/stat"))
      found.groups[process->first].push_back(process->second);
  });
  return found;
}

int64_t TicksSinceBoot() {
  timespec now = {};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const int64_t ticks = sysconf(_SC_CLK_TCK);
  return now.tv_sec * ticks + now.tv_nsec * ticks / 1'000'000'000;
}

int KillProcessesOfRun(const std::string& run_id) {
  return KillAll([&](const std::string& folder) { return VariableOf(folder, kRunIdVariable) == run_id; });
}

bool IsDetached(pid_t pid) { return !VariableOf("/proc/" + std::to_string(pid), kDetachedVariable).empty(); }

int KillProcessesOfAgent(const std::string& agent_id) {
  const rlim_t mark = MarkOf(agent_id);
  return KillAll([&](const std::string& folder) {
    return HasMark(folder, mark) || VariableOf(folder, kAgentIdVariable) == agent_id;
  });
}

}  // namespace muster
