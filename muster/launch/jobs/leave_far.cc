#include "muster/launch/jobs/leave_far.h"

#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/launch/far_home/far_places.h"
#include "muster/launch/jobs/far_jobs.h"
#include "muster/launch/registry/files/job_file.h"
#include "muster/launch/spec/experiment_file.h"

namespace muster {
namespace {

constexpr absl::Duration kLookWhetherFetched = absl::Milliseconds(100);

absl::Status StillFetched(const Home& home, const ExperimentId& id, const JobOfRun& job) {
  return absl::FailedPreconditionError(absl::StrCat(
      "the output of the last attempt of experiment ", id.ToString(), " is still being fetched from its job ", job.id,
      ", and the next attempt may need it: try again when that is done, or end job ", job.id, " of ", job.engine,
      " there, and what isn't here yet is lost; ", FarFile(home, id, kFarLogName), " says what can't be fetched"));
}

bool HasFiles(const std::string& folder) {
  std::error_code none;
  const std::filesystem::directory_iterator first(folder, none);
  return !none && first != std::filesystem::directory_iterator();
}

absl::Status CheckOutputOf(const Home& home, const RunRecord& former, const ExperimentFile& file, JobEngine* engine) {
  const std::string left = FarFile(home, former.id, kFarLeftName);
  if (PosixFileSystem().Exists(left))
    return absl::FailedPreconditionError(absl::StrCat(
        "not all that the last attempt of experiment ", former.id.ToString(), " has written was fetched from its job, ",
        "and this one would not find it: ", left, " names the rest. Accepted: without that file, this one begins with ",
        "what is here; muster rerun begins anew; `output` on a volume that outlives jobs keeps all"));
  const std::string& here = home.output(former.id);
  if (engine == nullptr || !file.output.empty() || !HasFiles(here) || !HasFarHomes(*engine)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "what the last attempt of experiment ", former.id.ToString(), " has written is in ", here,
      " here, which a job of ", engine->title(),
      " doesn't see, and this one would begin anew. Accepted: `output: DIR` in section `train` of ", file.name,
      ", DIR on a volume that all hosts of the job see and where you copy that folder to DIR/",
      former.id.run == 0 ? absl::StrCat(former.id.number) : absl::StrCat(former.id.number, "/", former.id.run),
      "; --on local; muster rerun begins anew"));
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

absl::Status CheckOutputIsFound(const Home& home, Registry& registry, const RunRecord& former,
                                const NewExperiment& next, JobEngine* engine) {
  ASSIGN_OR_RETURN(const ExperimentFile file, ParseExperimentFile(next.file_text, next.file_name));
  if (former.runs == 0) return CheckOutputOf(home, former, file, engine);
  ASSIGN_OR_RETURN(const std::vector<RunRecord> runs, registry.Runs(former.id.number));
  for (size_t i = 0; i < runs.size(); ++i) {
    // What has finished runs again only with other parameters.
    const bool is_over = i < next.runs.size() && runs[i].parameters == next.runs[i];
    if (runs[i].state == RunState::kFinished && is_over) continue;
    RETURN_IF_ERROR(CheckOutputOf(home, runs[i], file, engine));
  }
  return absl::OkStatus();
}

}  // namespace muster
