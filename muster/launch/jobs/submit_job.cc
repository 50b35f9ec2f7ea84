#include "muster/launch/jobs/submit_job.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/clock.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/utf8.h"
#include "muster/cluster/quoted.h"
#include "muster/launch/experiment/experiment_plan.h"
#include "muster/launch/experiment/grid_schedule.h"
#include "muster/launch/jobs/far_jobs.h"
#include "muster/launch/jobs/job_resources.h"
#include "muster/launch/jobs/job_wait.h"
#include "muster/launch/registry/files/job_file.h"
#include "muster/launch/registry/files/machine_id.h"
#include "muster/launch/registry/files/record_file.h"
#include "muster/launch/registry/run_lock.h"

namespace muster {
namespace {

constexpr int kExitOfKilledGrid = 128 + SIGTERM;

// Returns the jobs of the next one's chain, "17:19". All of them, because one that is cancelled before it begins lets
// the next begin beside the one before it; the last of a long chain will do.
std::string BeforeInChain(const std::vector<std::string>& jobs, size_t concurrency) {
  constexpr size_t kMostNamed = 50;
  std::vector<std::string> before;
  for (size_t i = jobs.size(); i >= concurrency && before.size() < kMostNamed; i -= concurrency)
    before.push_back(jobs[i - concurrency]);
  return absl::StrJoin(before, ":");
}

// `ended`: what came of having the job end again.
absl::Status NotWritten(const std::string& job, const absl::Status& why, const absl::Status& ended) {
  const std::string then =
      ended.ok() ? "it was ended again" : absl::StrCat("it can't be ended (", ended.message(), ")");
  return absl::Status(why.code(), absl::StrCat(job, " was submitted, but which one it is couldn't be written down; ",
                                               then, ": ", why.message()));
}

}  // namespace

absl::Status CheckPathsOfJob(const HostSetting& setting, const std::string& home, const std::string& folder,
                             const std::string& muster) {
  const std::string engine = setting.job_engine();
  if (engine.empty() || engine == kSlurmEngine) return absl::OkStatus();
  const std::pair<const char*, const std::string&> paths[] = {
      {"MUSTER_HOME", home}, {"the project's folder", folder}, {"this program", muster}};
  for (const auto& [what, path] : paths)
    if (!IsUtf8(path))
      return absl::InvalidArgumentError(absl::StrCat(what, " is ", Quoted(path),
                                                     ", which isn't text, and can't be in a job of ", engine,
                                                     "; accepted: a path in UTF-8"));
  return absl::OkStatus();
}

absl::StatusOr<std::string> ScriptOfJob(const JobEngine& engine, const JobsOrder& order, const ExperimentId& id,
                                        const std::string& after, double ending_seconds) {
  const SubmitOptions& options = order.experiment.options;
  RETURN_IF_ERROR(CheckPathsOfJob(options.hosts, order.home.path(), order.experiment.folder, order.muster));
  const JobTerms terms = engine.TermsOf(options.hosts);
  ASSIGN_OR_RETURN(const HostNeeds needs, NeedsOfHosts(order.file, options, terms.hosts));
  ASSIGN_OR_RETURN(const int least_hosts, LeastHosts(order.file, options, terms.hosts));
  return engine.Script({.experiment = id.ToString(),
                        .project = order.experiment.project,
                        .setting = options.hosts,
                        .needs = needs,
                        .least_hosts = least_hosts,
                        .notice = NoticeBeforeEnd(options, terms, ending_seconds),
                        .after = after,
                        .muster = order.muster,
                        .home = order.home.path(),
                        .folder = order.home.folder(id),
                        .output_file = order.home.job_output(id),
                        .over_file = order.home.job_over(id),
                        .waits_file = order.home.job_waits(id),
                        .notice_file = order.home.job_notice(id),
                        .users_umask = order.users_umask});
}

absl::Status WriteJobScript(const JobEngine& engine, const JobsOrder& order, const ExperimentId& id,
                            const std::string& after, double ending_seconds) {
  ASSIGN_OR_RETURN(const std::string script, ScriptOfJob(engine, order, id, after, ending_seconds));
  RETURN_IF_ERROR(ReplaceFile(order.home.job_script(id), script, Durability::kDisk));
  chmod(order.home.job_script(id).c_str(), 0700);
  return absl::OkStatus();
}

absl::StatusOr<std::string> SubmitRun(JobEngine& engine, const JobsOrder& order, const ExperimentId& id,
                                      const ChainPlace& place, double ending_seconds) {
  RETURN_IF_ERROR(PosixFileSystem().CreateDirectory(order.home.folder(id)));
  JobOfRun job{.engine = engine.name(),
               .at = engine.at(),
               .host = MachineId::This().host,
               .chain = place.chain,
               .ending_seconds = ending_seconds};
  RETURN_IF_ERROR(WriteJobScript(engine, order, id, place.after, ending_seconds));
  // A job before may have left them: its script was killed while it waited, or couldn't start a supervisor.
  for (const std::string& before : {order.home.job_waits(id), order.home.job_over(id)}) unlink(before.c_str());
  // Before there is a job, so that none is without a collector, which ends one that this process couldn't write down,
  // as it was killed.
  const bool is_far = HasFarHomes(engine);
  job.id = engine.IdIn(order.home.job_script(id));
  if (is_far) RETURN_IF_ERROR(MarkFar(order.home, id, job));
  if (is_far && order.collectors.has_value()) StartCollectors(order.home, *order.collectors);
  if (place.turn > 0) {
    NoteTurn(job, place.turn);
    RETURN_IF_ERROR(WriteJobFile(order.home.job(id), job));
    return job.id;
  }
  const absl::StatusOr<std::string> submitted = engine.Submit(order.home.job_script(id), "");
  const JobTerms terms = engine.TermsOf(order.experiment.options.hosts);
  if (absl::IsResourceExhausted(submitted.status())) {
    NoteNoRoom(job, std::string(submitted.status().message()), terms, RealClock().Now());
    if (is_far && !job.id.empty() && MayTryAgain(job, terms)) {
      RETURN_IF_ERROR(WriteJobFile(order.home.job(id), job));
      return job.id;
    }
  }
  // An engine that doesn't answer may have made it.
  const bool may_be_there = !job.id.empty() && absl::IsUnavailable(submitted.status());
  if (is_far && !submitted.ok() && !may_be_there) UnmarkFar(order.home, id);
  if (absl::IsResourceExhausted(submitted.status())) return absl::InvalidArgumentError(submitted.status().message());
  RETURN_IF_ERROR(submitted.status());
  job.id = *submitted;
  const absl::Status written = WriteJobFile(order.home.job(id), job);
  if (written.ok()) return job.id;
  // Nobody would know of it.
  const absl::Status ended = engine.End(job.id, JobEnd::kCancel);
  if (ended.ok() && is_far) UnmarkFar(order.home, id);
  return NotWritten(absl::StrCat("job ", job.id, " of ", engine.title()), written, ended);
}

absl::StatusOr<int> SubmitGrid(JobEngine& engine, Registry& registry, const JobsOrder& order, const ExperimentId& grid,
                               const std::function<void(int done)>& progress) {
  RETURN_IF_ERROR(WriteJobFile(order.home.job(grid), {.engine = engine.name(), .at = engine.at()}));
  ASSIGN_OR_RETURN(const std::vector<RunRecord> runs, registry.Runs(grid.number));
  const size_t concurrency = static_cast<size_t>(std::max(1, order.file.concurrency));
  const bool chains = engine.TermsOf(order.experiment.options.hosts).chains;
  std::vector<std::string> jobs;
  absl::Status refused;
  for (const RunRecord& run : runs) {
    if (HasEnded(run.state)) continue;
    ChainPlace place = {.chain = static_cast<int>(jobs.size() % concurrency)};
    if (chains)
      place.after = BeforeInChain(jobs, concurrency);
    else if (jobs.size() >= concurrency)
      place.turn = static_cast<int>(concurrency);
    // After an engine that doesn't answer, the next run isn't asked for.
    const absl::StatusOr<std::string> job = refused.ok() || absl::IsInvalidArgument(refused)
                                                ? SubmitRun(engine, order, run.id, place, 0)
                                                : absl::StatusOr<std::string>(refused);
    if (job.ok()) {
      jobs.push_back(*job);
      progress(static_cast<int>(jobs.size()));
      continue;
    }
    refused.Update(job.status());
    RETURN_IF_ERROR(registry.EndLost(run.id, {.reason = std::string(job.status().message()), .exit_code = 1}));
  }
  if (jobs.empty() && !refused.ok()) return refused;
  ASSIGN_OR_RETURN(RunRecord row, registry.Run(grid));
  if (row.output_dir.empty()) row.output_dir = OutputFolder(order.file, order.home, grid, /*grid=*/true);
  for (const RunState state : {RunState::kPending, RunState::kStarting, RunState::kRunning}) {
    row.state = state;
    RETURN_IF_ERROR(registry.SetRun(row));
  }
  return static_cast<int>(jobs.size());
}

void FreeNextOfGrid(JobEngine& engine, const Home& home, Registry& registry, const ExperimentId& ended) {
  const auto runs = registry.Runs(ended.number);
  const auto own = ReadJobFile(home.job(ended));
  if (!runs.ok() || !own.ok() || !own->has_value()) return;
  std::string last;
  for (const RunRecord& run : *runs) {
    const auto job = ReadJobFile(home.job(run.id));
    if (run.state != RunState::kCreated || !job.ok() || !job->has_value()) continue;
    // What comes next in its own chain begins by itself.
    if ((*job)->chain == (*own)->chain) return;
    last = (*job)->id;
  }
  if (!last.empty()) static_cast<void>(engine.Free(last));
}

absl::Status EndGridIfOver(const Home& home, Registry& registry, int64_t number) {
  const ExperimentId id{.number = number};
  ASSIGN_OR_RETURN(RunRecord grid, registry.Run(id));
  if (grid.runs == 0 || HasEnded(grid.state)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<RunRecord> runs, registry.Runs(number));
  if (std::any_of(runs.begin(), runs.end(), [](const RunRecord& run) { return !HasEnded(run.state); }))
    return absl::OkStatus();
  const absl::StatusOr<RunLock> lock = RunLock::Take(home.lock(id));
  if (absl::IsFailedPrecondition(lock.status())) return absl::OkStatus();  // another one is about to do it
  RETURN_IF_ERROR(lock.status());
  std::vector<int> numbers;
  for (const RunRecord& run : runs) numbers.push_back(run.id.run);
  GridSchedule schedule(numbers, 0, static_cast<int>(runs.size()), [](int) { return RunState::kRunning; });
  schedule.Fill();
  for (const RunRecord& run : runs) schedule.OnEnd(run.id.run, run.state);
  // Then somebody has stopped it, as far as it hadn't finished.
  if (std::none_of(runs.begin(), runs.end(), [](const RunRecord& run) { return run.state == RunState::kFailed; }))
    schedule.Stop();
  grid.state = schedule.state();
  grid.reason = schedule.reason();
  grid.exit_code = grid.state == RunState::kFinished ? 0 : grid.state == RunState::kKilled ? kExitOfKilledGrid : 1;
  return grid.state == RunState::kFinished
             ? registry.SetRun(grid)
             : registry.EndLost(id, {.state = grid.state, .reason = grid.reason, .exit_code = grid.exit_code});
}

}  // namespace muster
