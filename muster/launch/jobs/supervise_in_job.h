// The supervisor of a run within the run's own job (docs/slurm_jobs.md).
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "muster/launch/engines/job_engine.h"
#include "muster/launch/experiment/supervisor_setting.h"
#include "muster/launch/registry/experiment_id.h"
#include "muster/launch/registry/home.h"

namespace muster {

// Runs it to its end on the hosts of the job, and then sees to it that it goes on in another job, if its time was over
// and that is wanted. An earlier life of this supervisor may have been killed, or the job begun anew by its engine: the
// run begins once more then, after what was left of it has ended. Blocks. Returns the exit code of the script.
// FailedPrecondition: the run belongs to another job.
absl::StatusOr<int> SuperviseInJob(const Home& home, const ExperimentId& id, JobEngine& engine,
                                   SupervisorSetting setting);

// In the place of that, where the job can't have the hosts that the run asks for: the run fails for this reason, as one
// whose file is wrong. Returns the exit code of the script.
absl::StatusOr<int> RefuseInJob(const Home& home, const ExperimentId& id, JobEngine& engine, const std::string& why);

}  // namespace muster
