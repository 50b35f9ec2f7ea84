#include "apps/muster/experiment/submit_jobs.h"

#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "apps/muster/terminal/own_environment.h"
#include "muster/base/clock.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/launch/far_home/far_places.h"
#include "muster/launch/jobs/far_jobs.h"
#include "muster/launch/jobs/job_engines.h"
#include "muster/launch/jobs/job_resources.h"
#include "muster/launch/jobs/job_wait.h"
#include "muster/launch/jobs/submit_job.h"
#include "muster/launch/spec/experiment_file.h"

namespace muster {

namespace {

// What the engine refuses is among options that the user has given in two places.
absl::Status WithPlaces(const absl::Status& status, const std::string& engine, const std::string& file) {
  if (!absl::IsInvalidArgument(status)) return status;
  return absl::InvalidArgumentError(absl::StrCat(status.message(),
                                                 "; nothing was submitted. Its options are those of `", engine, "` in ",
                                                 file, " and of --", engine, "; muster train --dry-run shows them"));
}

// They are waited for and held all the same.
void SayWhichHostsAreIdle(const ExperimentFile& file, int hosts, const std::string& title) {
  const absl::StatusOr<int> idle = HostsWithoutTask(file, hosts);
  if (!idle.ok() || *idle == 0) return;
  std::fprintf(stderr, "muster: %d of the %d nodes that %s is asked for get no task; nodes: %d would do\n", *idle,
               hosts, title.c_str(), hosts - *idle);
}

// A run whose job may not be there has nothing that could be fetched.
bool HasJobFile(const Home& home, const ExperimentId& id) { return PosixFileSystem().Exists(home.job(id)); }

}  // namespace

void AwaitFetched(const Home& home, const RunRecord& run, int stop_fd) {
  constexpr absl::Duration kOutputPatience = absl::Minutes(1);
  constexpr int kOutputPauseMs = 200;
  constexpr absl::Duration kQuietly = absl::Seconds(2);
  std::vector<ExperimentId> left = {run.id};
  for (int i = 1; i <= run.runs; ++i) left.push_back({run.id.number, i});
  const std::vector<ExperimentId> all = left;
  pollfd stop = {stop_fd, POLLIN, 0};
  const absl::Time loud_from = RealClock().Now() + kQuietly;
  bool said = false;
  for (const absl::Time until = RealClock().Now() + kOutputPatience;;) {
    std::erase_if(left, [&](const ExperimentId& id) { return !IsFar(home, id) || !HasJobFile(home, id); });
    for (const ExperimentId& id : left) WantFar(home, id);
    if (!left.empty() && !said && RealClock().Now() >= loud_from) {
      std::fprintf(stderr,
                   "muster: fetching the output of experiment %s from its job; Ctrl-C leaves that to go on alone\n",
                   ShownId(run.id).c_str());
      said = true;
    }
    if (left.empty() || RealClock().Now() >= until || poll(&stop, 1, kOutputPauseMs) == 1) break;
  }
  for (const ExperimentId& id : left)
    std::fprintf(stderr,
                 "muster: the output of experiment %s is still being fetched from its job, also after this command; "
                 "muster status %s says so until it is here\n",
                 ShownId(id).c_str(), ShownId(id).c_str());
  for (const ExperimentId& id : all)
    if (const std::string file = FarFile(home, id, kFarLeftName); PosixFileSystem().Exists(file))
      std::fprintf(stderr, "muster: not all output of experiment %s was fetched from its job: %s names the rest\n",
                   ShownId(id).c_str(), file.c_str());
}

absl::Status SubmitJobs(OpenedHome& opened, const ExperimentId& id, const NewExperiment& experiment,
                        const JobsSetting& setting) {
  ASSIGN_OR_RETURN(const std::unique_ptr<JobEngine> engine, JobEngineOf(experiment.options.hosts, OwnEnvironment()));
  ASSIGN_OR_RETURN(const ExperimentFile file, ParseExperimentFile(experiment.file_text, experiment.file_name));
  const JobsOrder order{
      .home = opened.home,
      .muster = setting.muster,
      .users_umask = setting.users_umask,
      .file = file,
      .experiment = experiment,
      .collectors = SupervisorStart{.muster_command = setting.muster, .users_umask = setting.users_umask}};
  SayWhichHostsAreIdle(file, engine->TermsOf(experiment.options.hosts).hosts, engine->title());
  const bool of_grid = experiment.grid && id.run == 0;
  if (!of_grid) {
    const auto job = SubmitRun(*engine, order, id, {}, setting.ending_seconds);
    if (!job.ok() && IsFar(opened.home, id))
      std::fprintf(stderr,
                   "muster: %s may have made a job of experiment %s all the same: muster looks for it, and ends it; "
                   "muster status %s says whether that is still open\n",
                   engine->title().c_str(), ShownId(id).c_str(), ShownId(id).c_str());
    if (!job.ok()) return WithPlaces(job.status(), engine->name(), experiment.file_name);
    const auto written = ReadJobFile(opened.home.job(id));
    if (written.ok() && written->has_value() && HasNoJob(**written))
      std::fprintf(stderr, "experiment %s has no job of %s yet, and waits; muster status %s says why\n",
                   ShownId(id).c_str(), engine->title().c_str(), ShownId(id).c_str());
    else
      std::fprintf(stderr, "experiment %s is job %s of %s\n", ShownId(id).c_str(), job->c_str(),
                   engine->title().c_str());
    return absl::OkStatus();
  }
  const bool terminal = isatty(STDERR_FILENO) == 1;
  const auto jobs = SubmitGrid(*engine, *opened.registry, order, id, [terminal](int done) {
    if (terminal) std::fprintf(stderr, "\rsubmitting jobs: %d", done);
  });
  if (!jobs.ok()) return WithPlaces(jobs.status(), engine->name(), experiment.file_name);
  std::fprintf(stderr, "%sexperiment %s has %d jobs of %s\n", terminal ? "\r" : "", ShownId(id).c_str(), *jobs,
               engine->title().c_str());
  return absl::OkStatus();
}

}  // namespace muster
