// What a job of Slurm is asked for, from what an experiment's file states for its tasks. Pure, thread-safe.
#pragma once

#include "absl/status/statusor.h"
#include "muster/launch/engines/slurm/job_script.h"
#include "muster/launch/registry/registry.h"
#include "muster/launch/spec/experiment_file.h"

namespace muster {

// Returns cpus-per-task, mem and gres for each of `nodes` nodes: the most that the tasks of one node state together.
// What no task states isn't there: many sites refuse it, or have defaults of their own. InvalidArgument: more tasks
// than can be placed.
absl::StatusOr<SbatchOptions> ResourcesOfJob(const ExperimentFile& file, const SubmitOptions& options, int nodes);

// Returns how many nodes the user asks for; 1 if nothing is stated.
int NodesAskedFor(const SlurmSetting& setting);

// Returns how long before the end of its job a run begins to end: as long as its tasks may take, or have taken the last
// time (`ending_seconds`, 0: unknown), and some more; at most a third of the job's time, where that is stated.
absl::Duration NoticeBeforeEnd(const SubmitOptions& options, double ending_seconds);

}  // namespace muster
