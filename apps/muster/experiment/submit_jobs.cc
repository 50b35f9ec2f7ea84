#include "apps/muster/experiment/submit_jobs.h"

#include <unistd.h>

#include <cstdio>
#include <memory>

#include "apps/muster/terminal/own_environment.h"
#include "muster/base/status_macros.h"
#include "muster/launch/backends/backend.h"
#include "muster/launch/jobs/job_engines.h"
#include "muster/launch/jobs/submit_job.h"
#include "muster/launch/spec/experiment_file.h"

namespace muster {

absl::Status SubmitJobs(OpenedHome& opened, const ExperimentId& id, const NewExperiment& experiment,
                        const JobsSetting& setting) {
  const std::unique_ptr<JobEngine> engine = MakeJobEngine(kSlurmEngine, OwnEnvironment());
  ASSIGN_OR_RETURN(const ExperimentFile file, ParseExperimentFile(experiment.file_text, experiment.file_name));
  const JobsOrder order{.home = opened.home,
                        .muster = setting.muster,
                        .users_umask = setting.users_umask,
                        .file = file,
                        .experiment = experiment};
  const bool of_grid = experiment.grid && id.run == 0;
  if (!of_grid) {
    ASSIGN_OR_RETURN(const std::string job, SubmitRun(*engine, order, id, {}, setting.ending_seconds));
    std::fprintf(stderr, "experiment %s is job %s of %s\n", ShownId(id).c_str(), job.c_str(), engine->title().c_str());
    return absl::OkStatus();
  }
  const bool terminal = isatty(STDERR_FILENO) == 1;
  ASSIGN_OR_RETURN(const int jobs, SubmitGrid(*engine, *opened.registry, order, id, [terminal](int done) {
                     if (terminal) std::fprintf(stderr, "\rsubmitting jobs: %d", done);
                   }));
  std::fprintf(stderr, "%sexperiment %s has %d jobs of %s\n", terminal ? "\r" : "", ShownId(id).c_str(), jobs,
               engine->title().c_str());
  return absl::OkStatus();
}

}  // namespace muster
