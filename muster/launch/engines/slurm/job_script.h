// The script that sbatch gets: an experiment's resources as #SBATCH lines, and what keeps its supervisor alive
// (docs/slurm_jobs.md). Pure, thread-safe.
#pragma once

#include <string>

#include "muster/launch/engines/job_engine.h"

namespace muster {

std::string JobScript(const JobRequest& request);

}  // namespace muster
