// Whether Slurm's srun started this process as one of several tasks, and where the others are: what a program needs to
// find its role with no launcher but srun. Slurm sets variables in many more places (in the shell of salloc, in a batch
// script, in a notebook inside an allocation, in a shell of `srun --pty`), where nobody else was started: there the
// process is alone. Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/cluster/slurm/slurm_variables.h"

namespace muster {

// Steps of more tasks are refused.
inline constexpr int kMostTasksOfAStep = 65'536;

struct SlurmPlace {
  std::string node;
  int local = 0;  // the number of the task among those on its node, from 0

  bool operator==(const SlurmPlace&) const = default;
};

struct SlurmStep {
  uint32_t job_id = 0;
  uint32_t step_id = 0;
  int proc_id = 0;                 // which of the tasks this process is
  std::vector<SlurmPlace> places;  // of each task, in the order of SLURM_PROCID

  // Returns "17.0".
  std::string Name() const;
};

// Both members are empty outside of Slurm.
struct SlurmAnswer {
  std::optional<SlurmStep> step;
  std::string alone;  // inside of Slurm, but not one of several tasks: why, "Slurm's step 17.0 has one task"
};

// With `believed` (MUSTER_RESOLVE=slurm) the variables of a step of several tasks count whatever the process tree and
// the terminal say. InvalidArgument: it is such a step, but its variables are incomplete, contradict each other, or
// don't tell where the tasks are, or it was started with --pty; the message names the variable.
absl::StatusOr<SlurmAnswer> ReadSlurm(const SlurmVariables& variables, bool believed);

// Returns "task 0 of 2 of Slurm's step 17.0" where srun has started a program several times, as ReadSlurm sees that, of
// one of these processes; else "". A program that isn't meant to be a task of such a step asks this.
std::string OneOfSeveral(const SlurmVariables& variables);

// Deals out tasks to nodes as srun does: `counts` are the tasks of each node, `distribution` is SLURM_DISTRIBUTION
// ("block", "cyclic:block", "plane:2"; empty is block). InvalidArgument: one that doesn't tell, such as arbitrary.
absl::StatusOr<std::vector<SlurmPlace>> DealOutTasks(const std::vector<std::string>& nodes,
                                                     const std::vector<int>& counts, std::string_view distribution,
                                                     std::string_view plane_size);

}  // namespace muster
