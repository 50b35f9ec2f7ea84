#include "muster/launch/jobs/far_jobs.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/launch/far_home/far_places.h"
#include "muster/launch/registry/files/record_file.h"
#include "muster/launch/registry/run_lock.h"
#include "muster/launch/spec/experiment_file.h"

namespace muster {
namespace {

constexpr absl::Duration kFetchPatienceAtEnd = absl::Seconds(5);
constexpr size_t kMostJobId = 512;
constexpr absl::Duration kStillWanted = absl::Seconds(10);

}  // namespace

bool HasFarHomes(JobEngine& engine) { return !absl::IsUnimplemented(engine.Ask("", {}, "").status()); }

absl::Status MarkFar(const Home& home, const ExperimentId& id, const JobOfRun& job) {
  RETURN_IF_ERROR(PosixFileSystem().CreateDirectory(home.far_folder()));
  return WriteJobFile(home.far_marker(id), job);
}

std::optional<JobOfRun> JobMarkedFar(const Home& home, const ExperimentId& id) {
  const auto job = ReadJobFile(home.far_marker(id));
  return job.ok() && job->has_value() && !(*job)->id.empty() ? *job : std::nullopt;
}

void UnmarkFar(const Home& home, const ExperimentId& id) { unlink(home.far_marker(id).c_str()); }

bool IsFar(const Home& home, const ExperimentId& id) { return access(home.far_marker(id).c_str(), F_OK) == 0; }

std::vector<ExperimentId> FarRuns(const Home& home) {
  std::vector<ExperimentId> runs;
  const auto names = PosixFileSystem().ListDirectory(home.far_folder());
  if (!names.ok()) return runs;
  for (const std::string& name : *names)
    if (const auto id = ExperimentId::Parse(name); id.ok()) runs.push_back(*id);
  return runs;
}

bool MayHaveUnwrittenJob(const Home& home, const RunRecord& run) {
  if (!HasEnded(run.state) || !JobMarkedFar(home, run.id).has_value()) return false;
  const auto written = ReadJobFile(home.job(run.id));
  return written.ok() && !written->has_value();
}

std::string FetchingText(const Home& home, const RunRecord& run) {
  if (!HasEnded(run.state) || !IsFar(home, run.id)) return "";
  if (!MayHaveUnwrittenJob(home, run)) return "its output is still being fetched from its job";
  const JobOfRun job = JobMarkedFar(home, run.id).value_or(JobOfRun());
  return absl::StrCat("whether its job ", job.id, " was made isn't known; it is looked for, and ended if it is there");
}

bool HasComeInto(const Home& home, const ExperimentId& id, const std::string& job) {
  if (!IsFar(home, id)) return true;
  return PosixFileSystem().ReadShortFile(FarFile(home, id, kFarSentName), kMostJobId).value_or("") == job;
}

absl::Status NoteSent(const Home& home, const ExperimentId& id, const std::string& job) {
  return ReplaceFile(FarFile(home, id, kFarSentName), job, Durability::kDisk);
}

void WantFar(const Home& home, const ExperimentId& id) {
  static_cast<void>(ReplaceFile(FarFile(home, id, kFarWantedName), "", Durability::kProcess));
}

bool IsFarWanted(const Home& home, const ExperimentId& id) {
  const auto requests = PosixFileSystem().ListDirectory(home.requests(id));
  const auto is_request = [](const std::string& name) { return absl::EndsWith(name, ".json"); };
  if (requests.ok() && std::any_of(requests->begin(), requests->end(), is_request)) return true;
  return IsFarLookedAt(home, id);
}

bool IsFarLookedAt(const Home& home, const ExperimentId& id) {
  return AgeOfFile(FarFile(home, id, kFarWantedName)).value_or(absl::InfiniteDuration()) < kStillWanted;
}

FarMirror::Options FarOptionsOf(Registry& registry, const ExperimentId& id) {
  FarMirror::Options options;
  const auto asked = registry.Specification(id.number);
  if (!asked.ok()) return options;
  const auto file = ParseExperimentFile(asked->file_text, asked->file_name);
  if (file.ok()) options.log_bytes = file->log_bytes;
  return options;
}

absl::StatusOr<FarNews> RefreshFar(const Home& home, Registry& registry, JobEngine& engine, const Clock& clock,
                                   const ExperimentId& id, const JobOfRun& job) {
  return FarMirror(home, engine, clock, id, job.id).Refresh(FarOptionsOf(registry, id));
}

absl::Status EndLostInJob(const Home& home, Registry& registry, const ExperimentId& id, const LostEnd& end) {
  if (!IsFar(home, id)) return registry.EndLost(id, end);
  ASSIGN_OR_RETURN(const RunLock fetching, HoldFetching(home, id, kFetchPatienceAtEnd));
  return registry.EndLost(id, end);
}

absl::Status LeaveJob(const Home& home, Registry& registry, const ExperimentId& id, const JobOfRun& job) {
  ASSIGN_OR_RETURN(const RunLock fetching, HoldFetching(home, id, kFetchPatienceAtEnd));
  RETURN_IF_ERROR(WriteJobFile(home.job(id), job));
  // The next job begins these anew, which couldn't follow what is here.
  if (IsFar(home, id))
    for (const std::string& begun : {home.job_output(id), home.supervisor_log(id)}) unlink(begun.c_str());
  ASSIGN_OR_RETURN(const RunRecord run, registry.Run(id));
  return run.state == RunState::kCreated ? absl::OkStatus() : registry.StartOver(id, "its job was given back");
}

void StartCollectors(const Home& home, const SupervisorStart& start) {
  for (const ExperimentId& id : FarRuns(home)) {
    absl::StatusOr<RunLock> lock = RunLock::Take(FarFile(home, id, kFarCollectorName));
    if (lock.ok()) static_cast<void>(StartCollector(home, id, *std::move(lock), FarFile(home, id, kFarLogName), start));
  }
}

}  // namespace muster
