// Finds and kills the processes of a run by the MUSTER_RUN_ID in their environment: they inherit it whatever else they
// do (a new process group, a new session, a parent that has died); and finds those of a process group. One reader of
// /proc; thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace muster {

// Those that were started with MUSTER_RUN_ID=`run_id` and still run (no zombies). Only what this user may look into.
std::vector<pid_t> ProcessesOfRun(const std::string& run_id);

struct GroupProcess {
  pid_t pid;
  int64_t started;  // clock ticks since the machine's start
};

// The processes of a group that still run (no zombies), its leader too if it does.
std::vector<GroupProcess> ProcessesOfGroup(pid_t group);

// As `started` counts; sysconf(_SC_CLK_TCK) a second.
int64_t TicksSinceBoot();

// Kills all processes of the run, and what they start meanwhile; waits until each is gone. Returns how many there were.
int KillProcessesOfRun(const std::string& run_id);

}  // namespace muster
