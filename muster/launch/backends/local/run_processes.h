// Finds and kills the processes of runs by the MUSTER_RUN_ID in their environment, and those of one backend by its
// MUSTER_AGENT_ID or its mark (system/process_mark.h). They inherit all three in a new process group, a new session and
// with a dead parent; the mark also where they clear their environment. Also finds those of a process group. Reads
// /proc; thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace muster {

// Returns the processes that were started with MUSTER_RUN_ID=`run_id` and still run (no zombies), as far as this user
// may inspect them.
std::vector<pid_t> ProcessesOfRun(const std::string& run_id);

// The same for several runs at the cost of one: a pass over /proc, which reads the environments of this user's own
// processes. (The superuser's is longer: a task of its may have become another user.) Runs without any are missing.
std::map<std::string, std::vector<pid_t>> ProcessesOfRuns(const std::set<std::string>& run_ids);

// Waits until the guard of a run, if there is one, has ended all that it guards; then it ends. Returns at once
// otherwise.
void AwaitGuard(const std::string& run_id);

// Returns whether a process was started to outlive whatever has started it (MUSTER_DETACHED).
bool IsDetached(pid_t pid);

struct GroupProcess {
  pid_t pid;
  int64_t started;  // clock ticks since the machine's start
};

// The processes of all groups that still run (no zombies).
struct ProcessGroups {
  int64_t began = 0;  // TicksSinceBoot when reading began: what started later may be missing
  std::map<pid_t, std::vector<GroupProcess>> groups;
};
ProcessGroups ReadProcessGroups();

// Returns the time since boot in the unit of `started`: sysconf(_SC_CLK_TCK) ticks per second.
int64_t TicksSinceBoot();

// Kills all processes of the run, also those that start meanwhile, and waits until each is gone. Returns their number,
// without those that had been killed before and are only slow to end.
int KillProcessesOfRun(const std::string& run_id);
// The same for the processes of one backend, also if others have started some of the same run, and for those that have
// cleared their environment.
int KillProcessesOfAgent(const std::string& agent_id);

}  // namespace muster
