// Looks in /proc for the slurmstepd that a process stands below, which tells a task of a step from a process that has
// only inherited its variables.
#pragma once

#include <sys/types.h>

#include <string>

#include "muster/cluster/slurm/slurm_variables.h"

namespace muster {

// Goes up from the process `pid`, which is the first one looked at, to the nearest slurmstepd. `task_pid` is the text
// of SLURM_TASK_PID, "" if there is none. `proc` is "/proc", but in tests. What can't be read ends the search.
StepProcess FindStepProcess(const std::string& proc, pid_t pid, const std::string& task_pid);

}  // namespace muster
