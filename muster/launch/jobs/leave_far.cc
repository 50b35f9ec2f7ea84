#include "muster/launch/jobs/leave_far.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/launch/far_home/far_places.h"
#include "muster/launch/jobs/far_jobs.h"
#include "muster/launch/registry/files/job_file.h"

namespace muster {
namespace {

constexpr absl::Duration kLookWhetherFetched = absl::Milliseconds(100);

absl::Status StillFetched(const Home& home, const ExperimentId& id, const JobOfRun& job) {
  return absl::FailedPreconditionError(absl::StrCat(
      "the output of the last attempt of experiment ", id.ToString(), " is still being fetched from its job ", job.id,
      ", and the next attempt may need it: try again when that is done, or end job ", job.id, " of ", job.engine,
      " there, and what isn't here yet is lost; ", FarFile(home, id, kFarLogName), " says what can't be fetched"));
}

}  // namespace

absl::Status LeaveFar(const Home& home, JobWatch& jobs, const ExperimentId& id, const Clock& clock,
                      const std::function<void(absl::Duration)>& pause) {
  ASSIGN_OR_RETURN(std::optional<JobOfRun> job, ReadJobFile(home.job(id)));
  for (const absl::Time until = clock.Now() + kLeavePatienceOfFar; IsFar(home, id) && clock.Now() < until;
       pause(kLookWhetherFetched))
    WantFar(home, id);
  if (!IsFar(home, id)) return absl::OkStatus();
  if (job.has_value() && HasComeInto(home, id, job->id)) return StillFetched(home, id, *job);
  if (!job.has_value()) job = JobMarkedFar(home, id);
  JobEngine* const engine = job.has_value() ? jobs.EngineOf(*job) : nullptr;
  if (engine != nullptr) static_cast<void>(engine->End(job->id, JobEnd::kCancel));
  UnmarkFar(home, id);
  return absl::OkStatus();
}

}  // namespace muster
