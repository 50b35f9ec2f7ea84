// Starts the processes that a benchmark measures. Linux.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace muster::bench {

using EnvironmentChanges = std::vector<std::pair<std::string, std::string>>;

// Starts a program with this process's environment and the changes; its output goes to the file `log`. It dies with
// this process.
pid_t Start(const std::vector<std::string>& command, const EnvironmentChanges& environment, const std::string& log);

// Starts this program again, with other arguments.
pid_t StartSelf(const std::vector<std::string>& arguments, const EnvironmentChanges& environment,
                const std::string& log);

// Returns the path of another program in this program's folder.
std::string SiblingProgram(const std::string& name);

// Returns the user and system time of a process so far, in seconds; negative if it has ended.
double CpuSeconds(pid_t process);

// Processor time in seconds.
struct CpuTime {
  double user = 0;
  double system = 0;
};
inline CpuTime operator-(const CpuTime& a, const CpuTime& b) { return {a.user - b.user, a.system - b.system}; }

// Returns a process's processor time so far, in ticks of the kernel's clock (10 ms); zeros if there is no such process.
CpuTime CpuTimeOf(pid_t process);

// Returns the seconds of a process, and of its children that have ended and of theirs, in ticks as above.
double CpuSecondsWithEnded(pid_t process);

struct Memory {
  double own_mb = 0;  // private: what would be free without the process
  double pss_mb = 0;  // and its share of what it has in common with others
};

// Returns a process's memory in MiB; zeros if there is no such process.
Memory MemoryOf(pid_t process);

// Blocks until the process ends; returns its exit code, or 128 + the signal. `cpu_seconds` gets its processor time.
int WaitFor(pid_t child, double* cpu_seconds = nullptr);

// Blocks until all of these have ended; they must be all processes that this process has started. When one fails, kills
// the others, which may be waiting for it. Returns the index of the first that failed; -1 if none has.
int WaitForAll(const std::vector<pid_t>& children);

// Writes the end of a file to stderr: the last output of a process that failed.
void ShowEnd(const std::string& log);

// Returns different ports of the loopback that were free a moment ago.
std::vector<int> FreePorts(int count);
inline int FreePort() { return FreePorts(1)[0]; }

}  // namespace muster::bench
