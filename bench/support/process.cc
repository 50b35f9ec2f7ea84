#include "bench/support/process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "muster/base/check.h"
#include "muster/base/net/free_ports.h"

namespace muster::bench {
namespace {

// Returns the fields of /proc/PID/stat that follow the program's name, which is in parentheses; none if it has ended.
std::istringstream StatOf(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  return std::istringstream(text.empty() ? "" : text.substr(text.rfind(')') + 2));
}

}  // namespace

pid_t Start(const std::vector<std::string>& command, const EnvironmentChanges& environment, const std::string& log) {
  const pid_t child = fork();
  MUSTER_CHECK(child >= 0);
  if (child > 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  dup2(file, STDOUT_FILENO);
  dup2(file, STDERR_FILENO);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  _exit(127);
}

pid_t StartSelf(const std::vector<std::string>& arguments, const EnvironmentChanges& environment,
                const std::string& log) {
  std::vector<std::string> command = {std::filesystem::read_symlink("/proc/self/exe")};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return Start(command, environment, log);
}

double CpuSeconds(pid_t process) {
  std::string state;
  StatOf(process) >> state;
  // Doesn't use the ticks in that file: a process that mostly sleeps gets only a few in a minute.
  clockid_t clock = 0;
  timespec spent = {};
  if (state.empty() || state == "Z" || clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &spent) != 0)
    return -1;
  return static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) * 1e-9;
}

CpuTime CpuTimeOf(pid_t process) {
  std::istringstream fields = StatOf(process);
  std::string other;
  for (int i = 0; i < 11; ++i) fields >> other;
  CpuTime ticks;
  fields >> ticks.user >> ticks.system;
  const auto a_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  return {ticks.user / a_second, ticks.system / a_second};
}

double CpuSecondsWithEnded(pid_t process) {
  std::istringstream fields = StatOf(process);
  std::string other;
  for (int i = 0; i < 11; ++i) fields >> other;
  double ticks = 0;
  for (int i = 0; i < 4; ++i) {
    double part = 0;
    fields >> part;
    ticks += part;
  }
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

Memory MemoryOf(pid_t process) {
  std::ifstream rollup("/proc/" + std::to_string(process) + "/smaps_rollup");
  Memory memory;
  for (std::string line; std::getline(rollup, line);) {
    std::istringstream words(line);  // "Pss:  1234 kB"; the first line has other words
    std::string name;
    double kilobytes = 0;
    if (!(words >> name >> kilobytes)) continue;
    if (name.starts_with("Private_")) memory.own_mb += kilobytes / 1024;
    if (name == "Pss:") memory.pss_mb = kilobytes / 1024;
  }
  return memory;
}

std::string SiblingProgram(const std::string& name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

int WaitFor(pid_t child, double* cpu_seconds) {
  int status = 0;
  rusage usage = {};
  while (wait4(child, &status, 0, &usage) < 0) MUSTER_CHECK(errno == EINTR);
  const auto seconds = [](const timeval& time) { return static_cast<double>(time.tv_sec) + time.tv_usec / 1e6; };
  if (cpu_seconds != nullptr) *cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int WaitForAll(const std::vector<pid_t>& children) {
  std::vector<bool> ended(children.size());
  int failed = -1;
  for (size_t left = children.size(); left > 0;) {
    int status = 0;
    const pid_t child = wait4(-1, &status, 0, nullptr);
    MUSTER_CHECK(child > 0 || errno == EINTR);
    const auto found = std::find(children.begin(), children.end(), child);
    if (found == children.end()) continue;
    const auto index = static_cast<size_t>(found - children.begin());
    ended[index] = true;
    --left;
    if (failed >= 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) continue;
    failed = static_cast<int>(index);
    for (size_t i = 0; i < children.size(); ++i)
      if (!ended[i]) kill(children[i], SIGKILL);
  }
  return failed;
}

void ShowEnd(const std::string& log) {
  std::ifstream file(log);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::cerr << text.substr(text.size() > 1000 ? text.size() - 1000 : 0);
}

std::vector<int> FreePorts(int count) {
  const auto held = muster::FreePorts::Reserve(count).value();
  std::vector<int> ports;
  for (int i = 0; i < count; ++i) ports.push_back(held.port(static_cast<size_t>(i)));
  return ports;
}

}  // namespace muster::bench
