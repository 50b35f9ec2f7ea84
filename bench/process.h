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

// Blocks until the process ends; its exit code, or 128 + the signal.
int WaitFor(pid_t child);

// Writes the end of a file to stderr: what a process that failed has said.
void ShowEnd(const std::string& log);

// A port of the loopback that was free a moment ago.
int FreePort();

}  // namespace muster::bench
