// Starting the processes that a benchmark measures. Linux.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace muster::bench {

using EnvironmentChanges = std::vector<std::pair<std::string, std::string>>;

// Starts a program with this process's environment and the changes; what it writes goes to the file `log`. It dies with
// this process.
pid_t Start(const std::vector<std::string>& command, const EnvironmentChanges& environment, const std::string& log);

// This program again, with other arguments.
pid_t StartSelf(const std::vector<std::string>& arguments, const EnvironmentChanges& environment,
                const std::string& log);

// The path of another program in this program's folder.
std::string SiblingProgram(const std::string& name);

// User's and system's time of a process so far, in seconds; negative: it has ended.
double CpuSeconds(pid_t process);

// Processor time, seconds.
struct CpuTime {
  double user = 0;
  double system = 0;
};
inline CpuTime operator-(const CpuTime& a, const CpuTime& b) { return {a.user - b.user, a.system - b.system}; }

// What a process has spent so far, in ticks of the kernel's clock (10 ms); zeros: there is none.
CpuTime CpuTimeOf(pid_t process);

// Blocks until the process ends; its exit code, or 128 + the signal. `cpu_seconds`: what it spent of processor time.
int WaitFor(pid_t child, double* cpu_seconds = nullptr);

// Blocks until all of these have ended, which must be all that this process has started. When one fails, the others,
// which may wait for it, are killed. The index of the first that failed; -1: none has.
int WaitForAll(const std::vector<pid_t>& children);

// Writes the end of a file to stderr: what a process that failed has said.
void ShowEnd(const std::string& log);

// Ports of the loopback, each another one, that were free a moment ago.
std::vector<int> FreePorts(int count);
inline int FreePort() { return FreePorts(1)[0]; }

}  // namespace muster::bench
