// The supervisor of a run within the run's own job (docs/slurm_jobs.md).
#pragma once

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

}  // namespace muster
