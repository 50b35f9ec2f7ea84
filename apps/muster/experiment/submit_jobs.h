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
[[nodiscard]] absl::Status SubmitJobs(OpenedHome& opened, const ExperimentId& id, const NewExperiment& experiment,
                                      const JobsSetting& setting);

}  // namespace muster
