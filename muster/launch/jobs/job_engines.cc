#include "muster/launch/jobs/job_engines.h"

#include "muster/launch/backends/backend.h"
#include "muster/launch/engines/slurm/slurm_jobs.h"

namespace muster {

std::unique_ptr<JobEngine> MakeJobEngine(const std::string& name, const std::vector<std::string>& environment) {
  if (name == kSlurmEngine) return std::make_unique<SlurmJobs>(environment);
  return nullptr;
}

}  // namespace muster
