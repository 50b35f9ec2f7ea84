// Submits an experiment as a job of an engine, a grid as one for each run, for `muster train` and `muster rerun`.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "apps/muster/experiment/experiment_command.h"

namespace muster {

struct JobsSetting {
  std::string muster;  // this program
  mode_t users_umask = 022;
  double ending_seconds = 0;  // of the attempt before, as JobOfRun has it
};

// Says on stderr which job it is. The caller holds the run's lock. InvalidArgument has the engine's refusal.
// Starts what fetches from jobs that share no folder with this machine (docs/far_homes.md).
[[nodiscard]] absl::Status SubmitJobs(OpenedHome& opened, const ExperimentId& id, const NewExperiment& experiment,
                                      const JobsSetting& setting);

// After the end of a run, or a grid, whose jobs share no folder with this machine: waits until its output has been
// fetched, a minute at most, and says on stderr what is missing. `stop_fd`: readable when somebody doesn't want to
// wait.
void AwaitFetched(const Home& home, const RunRecord& run, int stop_fd);

}  // namespace muster
