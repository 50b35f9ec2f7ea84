// Finds and kills the processes of a run by the MUSTER_RUN_ID in their environment: they inherit it whatever else they
// do (a new process group, a new session, a parent that has died). One reader of /proc; thread-safe.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace muster {

// Those that were started with MUSTER_RUN_ID=`run_id` and still run (no zombies). Only what this user may look into.
std::vector<pid_t> ProcessesOfRun(const std::string& run_id);

// Kills them all, and what they start meanwhile; waits until each is gone. Returns how many there were.
int KillProcessesOfRun(const std::string& run_id);

}  // namespace muster
