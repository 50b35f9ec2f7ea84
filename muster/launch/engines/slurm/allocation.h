// What Slurm has given this process: read from the environment that salloc, sbatch and srun set. What counts is the
// job's, also within a step of it, and never what this machine has, which may be a login node. Pure functions,
// thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster {

struct AllocatedNode {
  std::string name;  // as Slurm names it
  int cpus = 0;      // of the job there; 0: Slurm doesn't say

  bool operator==(const AllocatedNode&) const = default;
};

struct SlurmAllocation {
  std::string job;                    // its id, in digits
  std::vector<AllocatedNode> nodes;   // in Slurm's order; at least one
  std::optional<absl::Time> ends_at;  // when Slurm will end the job, where it says so
};

// `environment`: "NAME=VALUE". NotFound: this is no process of a job; the message says how to get one. InvalidArgument
// names a variable that isn't what Slurm sets.
absl::StatusOr<SlurmAllocation> AllocationIn(const std::vector<std::string>& environment);

// Returns "job 17 of Slurm: 3 nodes with 4, 4, 2 CPUs, until 18:05".
std::string DescribeAllocation(const SlurmAllocation& allocation, absl::TimeZone zone);

}  // namespace muster
