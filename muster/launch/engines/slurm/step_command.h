// The command line and the environment with which srun starts agents, and the environment of Slurm's other commands.
// Every resource is said anew, and srun gets none of the variables that a salloc, a batch script or a step around it
// has set: they are options of srun, too, and those of one step contradict those of another (since Slurm 22.05 also
// cpus-per-task). Pure functions, thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

namespace muster {

// What each node runs; nothing in it is secret, since everybody sees the words of a process.
struct AgentProgram {
  std::string muster;      // the file, as the nodes see it
  std::string job;         // the agents' job
  std::string rendezvous;  // the file
  absl::Duration grace = absl::Seconds(30);
  bool in_job = false;  // HostPlan::in_job
};

// Returns srun's words for an agent on each of the job's `nodes` nodes.
std::vector<std::string> StepOnAllNodes(const AgentProgram& program, size_t nodes);
// Returns srun's words for an agent on each of these nodes, beside the steps that are there. `gpus`: how many the step
// has on each; nullopt: those that the job was asked for (GpusOfNodes).
std::vector<std::string> StepOnNodes(const AgentProgram& program, const std::vector<std::string>& nodes,
                                     std::optional<int> gpus);

// Returns srun's environment: `own` ("NAME=VALUE") without Slurm's variables but those that tell of the job and its
// cluster and are no options of srun, and of muster's with those that users set (kUsersVariables) alone: one of the
// others may be the job's secret. Tasks get all the rest.
std::vector<std::string> StepEnvironment(const std::vector<std::string>& own);

// Returns the environment of sbatch and of other commands about jobs: `own` without what is of a job or a step in which
// this process runs, which isn't the new job's, and of muster's with those that users set alone. What the user has set
// for sbatch stays.
std::vector<std::string> SubmitEnvironment(const std::vector<std::string>& own);

}  // namespace muster
