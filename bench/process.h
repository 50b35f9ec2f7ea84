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

// Blocks until the process ends; its exit code, or 128 + the signal. `cpu_seconds`: what it spent of processor time.
int WaitFor(pid_t child, double* cpu_seconds = nullptr);

// Writes the end of a file to stderr: what a process that failed has said.
void ShowEnd(const std::string& log);

// Ports of the loopback, each another one, that were free a moment ago.
std::vector<int> FreePorts(int count);
inline int FreePort() { return FreePorts(1)[0]; }

}  // namespace muster::bench
