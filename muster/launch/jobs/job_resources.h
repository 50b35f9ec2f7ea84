// What a job is asked for, from what an experiment's file states for its tasks. Pure, thread-safe.
#pragma once

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/launch/engines/job_engine.h"
#include "muster/launch/registry/registry.h"
#include "muster/launch/spec/experiment_file.h"

namespace muster {

// Returns what each of `hosts` hosts must have: the most that the tasks of one host state together. InvalidArgument:
// more tasks than can be placed.
absl::StatusOr<HostNeeds> NeedsOfHosts(const ExperimentFile& file, const SubmitOptions& options, int hosts);

// Returns the least number of hosts with which a run can begin whose job asks for `hosts`: those that only have tasks
// which nobody waits for (DispensableHosts) may be missing. All, where the user has said which host has which task
// (`placement`), or where the others would need more memory or GPUs for such a task. Errors are those of NeedsOfHosts.
absl::StatusOr<int> LeastHosts(const ExperimentFile& file, const SubmitOptions& options, int hosts);

// Returns how many of so many hosts get no task, unless `placement` says otherwise. Errors are those of NeedsOfHosts.
absl::StatusOr<int> HostsWithoutTask(const ExperimentFile& file, int hosts);

// Returns how long before the end of its job a run begins to end: as long as its tasks may take, or have taken the last
// time (`ending_seconds`, 0: unknown), and some more; at most a third of the job's time, where that is stated.
absl::Duration NoticeBeforeEnd(const SubmitOptions& options, const JobTerms& terms, double ending_seconds);

}  // namespace muster
