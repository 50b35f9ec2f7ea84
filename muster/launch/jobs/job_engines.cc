#include "muster/launch/jobs/job_engines.h"

#include "muster/base/status_macros.h"
#include "muster/launch/engines/kubernetes/kubernetes_jobs.h"
#include "muster/launch/engines/ray/ray_jobs.h"
#include "muster/launch/engines/slurm/slurm_jobs.h"
#include "muster/launch/engines/spark/spark_jobs.h"

namespace muster {

std::unique_ptr<JobEngine> MakeJobEngine(const std::string& name, const std::string& at,
                                         const std::vector<std::string>& environment) {
  if (name == kSlurmEngine) return std::make_unique<SlurmJobs>(environment);
  if (name == kRayEngine) return std::make_unique<RayJobs>(at, environment);
  if (name == kKubernetesEngine) return std::make_unique<KubernetesJobs>(at, environment);
  if (name == kSparkEngine) return std::make_unique<SparkJobs>(at, environment);
  return nullptr;
}

absl::StatusOr<std::unique_ptr<JobEngine>> JobEngineOf(const HostSetting& setting,
                                                       const std::vector<std::string>& environment) {
  std::string at;
  if (setting.ray.has_value()) at = PlaceOfRay(*setting.ray, environment);
  if (setting.kubernetes.has_value()) {
    ASSIGN_OR_RETURN(at, PlaceOfKubernetes(*setting.kubernetes, environment));
  }
  if (setting.spark.has_value()) at = PlaceOfSpark(*setting.spark);
  return MakeJobEngine(setting.job_engine(), at, environment);
}

std::string JobEngineTitle(const std::string& name) {
  const std::unique_ptr<JobEngine> engine = MakeJobEngine(name, "", {});
  return engine == nullptr ? name : engine->title();
}

std::vector<std::string> JobEngineNames() { return {kSlurmEngine, kRayEngine, kSparkEngine, kKubernetesEngine}; }

}  // namespace muster
