// What an agent takes from its own environment, which sshd or Slurm has made. Pure functions, thread-safe.
#pragma once

#include <string>
#include <vector>

namespace muster {

// Returns the environment for tasks: `own` ("NAME=VALUE") without what belongs to the login (SSH_*), to a step of Slurm
// (SLURM_PROCID, SLURM_NTASKS; what is about the job stays) and to muster (MUSTER_*), which each task is told anew,
// unless the user has set it. What Slurm gives the job here is what the tasks share: MUSTER_PROCESSORS.
// `program_folder`, where this muster is, comes first in the PATH, so that `muster ps` there is of the same build as
// the run.
std::vector<std::string> TaskEnvironment(const std::vector<std::string>& own, const std::string& program_folder);

// Returns the address at which this host was reached: the third word of SSH_CONNECTION, otherwise "127.0.0.1".
std::string ReachedAddress(const std::vector<std::string>& own);

}  // namespace muster
