#include "muster/launch/jobs/job_collector.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/far_home/far_places.h"
#include "muster/launch/far_home/output_mirror.h"
#include "muster/launch/far_home/parcel.h"
#include "muster/launch/jobs/far_jobs.h"
#include "muster/launch/jobs/job_wait.h"
#include "muster/launch/jobs/submit_job.h"
#include "muster/launch/registry/files/record_file.h"

namespace muster {
namespace {

constexpr absl::Duration kCollectWanted = absl::Seconds(1);
// Somebody waits for the pods to be there, and then for the first line.
constexpr absl::Duration kCollectAtStart = absl::Milliseconds(250);
constexpr absl::Duration kStart = absl::Seconds(10);
constexpr absl::Duration kLookAtStart = absl::Seconds(5);
// The collector of another run of its grid, which finds that run's end, may have been killed.
constexpr absl::Duration kLookForOthers = absl::Minutes(5);
constexpr absl::Duration kCollectUnwanted = absl::Seconds(5);
constexpr absl::Duration kLongestCollectPause = absl::Seconds(30);
constexpr absl::Duration kCollectPatience = absl::Seconds(10);
// An engine that has been silent for so long, about a run that ended so long ago, is gone.
constexpr absl::Duration kGoneSilence = absl::Minutes(10);
constexpr absl::Duration kGoneAfter = absl::Hours(24);
// An address that answers no more is asked for so long; the next command asks again.
constexpr absl::Duration kMostInVain = absl::Hours(1);
constexpr size_t kMostSaid = 100;     // lines
constexpr size_t kMostOfSaid = 1000;  // bytes of each

// Errors of one kind have different ports and times.
std::string WithoutNumbers(std::string text) {
  std::erase_if(text, [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); });
  return text;
}

}  // namespace

void JobCollector::Say(const std::string& line, const std::string& thing) {
  if (said_.size() > kMostSaid || !said_.insert(thing.substr(0, kMostOfSaid)).second) return;
  means_.say(said_.size() > kMostSaid ? "more can't be done, which isn't said any more" : OneLine(line, kMostOfSaid));
}

absl::StatusOr<bool> JobCollector::HasRunEnded() {
  ASSIGN_OR_RETURN(const RunRecord run, means_.registry.Run(id_));
  return HasEnded(run.state);
}

absl::StatusOr<bool> JobCollector::IsGivenUp() {
  const absl::Time now = means_.clock.Now();
  heard_at_ = std::min(heard_at_, now);
  ASSIGN_OR_RETURN(const RunRecord run, means_.registry.Run(id_));
  if (!HasEnded(run.state) || now - run.ended < kGoneAfter || now - heard_at_ < kGoneSilence) return false;
  means_.say("nothing was heard of its job for so long that nothing more will be fetched");
  UnmarkFar(means_.home, id_);
  return true;
}

absl::StatusOr<bool> JobCollector::LookAndSeeEnd() {
  for (const std::string& line : means_.jobs.Look(id_.number)) means_.say(line);
  return HasRunEnded();
}

absl::Status JobCollector::Send(const JobOfRun& job, JobEngine& engine) {
  if (HasComeInto(means_.home, id_, job.id)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const RunRecord run, means_.registry.Run(id_));
  RETURN_IF_ERROR(SendParcel(means_.home, engine, {.id = id_, .job = job.id, .tree = run.tree}));
  sent_at_ = means_.clock.Now();
  return NoteSent(means_.home, id_, job.id);
}

absl::StatusOr<bool> JobCollector::AfterSilence(const JobOfRun& job, JobEngine& engine, const absl::Status& why) {
  ASSIGN_OR_RETURN(const bool ended, LookAndSeeEnd());
  if (!ended) return why;
  // What is still to be fetched may come, unless there is no job any more.
  const auto news = engine.Look({job.id});
  if (!news.ok()) {
    ASSIGN_OR_RETURN(const bool given_up, IsGivenUp());
    return given_up ? absl::StatusOr<bool>(true) : news.status();
  }
  heard_at_ = means_.clock.Now();
  const auto found = news->find(job.id);
  const JobPhase phase = found == news->end() ? JobPhase::kUnknown : found->second.phase;
  return phase == JobPhase::kRuns ? absl::StatusOr<bool>(why) : Release(job, engine);
}

absl::Status JobCollector::FetchOutputs(const JobOfRun& job, JobEngine& engine, bool at_end, bool& more) {
  const FarOutputOptions options = {.at_end = at_end,
                                    .everything = PosixFileSystem().Exists(FarFile(means_.home, id_, kFarAllName)),
                                    .patience = kCollectPatience};
  output_at_ = means_.clock.Now();
  ASSIGN_OR_RETURN(const FetchedOutput fetched, FetchOutput(means_.home, id_, engine, job.id, means_.clock, options));
  more = fetched.more;
  if (!at_end || more) return absl::OkStatus();
  const std::string left = FarFile(means_.home, id_, kFarLeftName);
  if (fetched.left.empty()) {
    unlink(left.c_str());
    return absl::OkStatus();
  }
  return ReplaceFile(left, absl::StrJoin(fetched.left, "\n") + "\n", Durability::kProcess);
}

// The supervisor has ended, and what it has written is here.
absl::StatusOr<bool> JobCollector::Finish(const JobOfRun& job, JobEngine& engine) {
  bool more = false;
  RETURN_IF_ERROR(FetchOutputs(job, engine, /*at_end=*/true, more));
  if (more) return false;
  FarMirror::Options options = FarOptionsOf(means_.registry, id_);
  options.fresh = absl::ZeroDuration();
  options.collected = true;
  RETURN_IF_ERROR(FarMirror(means_.home, engine, means_.clock, id_, job.id).Refresh(options).status());
  collected_ = job.id;
  ASSIGN_OR_RETURN(const bool ended, HasRunEnded());
  return ended ? Release(job, engine) : false;
}

absl::StatusOr<bool> JobCollector::Release(const JobOfRun& job, JobEngine& engine) {
  RETURN_IF_ERROR(engine.End(job.id, JobEnd::kCancel));
  // Another attempt may have begun meanwhile.
  ASSIGN_OR_RETURN(const std::optional<JobOfRun> present, ReadJobFile(means_.home.job(id_)));
  if (!present.has_value() || present->id != job.id) return false;
  if (id_.run > 0) {
    FreeNextOfGrid(engine, means_.home, means_.registry, id_);
    RETURN_IF_ERROR(EndGridIfOver(means_.home, means_.registry, id_.number));
  }
  for (const char* done : {kFarAllName, kFarPieceName}) unlink(FarFile(means_.home, id_, done).c_str());
  UnmarkFar(means_.home, id_);
  // The supervisor has removed this only in its own home.
  ASSIGN_OR_RETURN(const std::vector<ExperimentId> open, means_.registry.OpenRuns());
  const auto is_of_it = [this](const ExperimentId& other) { return other.number == id_.number; };
  if (std::none_of(open.begin(), open.end(), is_of_it)) unlink(means_.home.open_marker(id_.number).c_str());
  return true;
}

absl::Status JobCollector::LookAtStart() {
  ASSIGN_OR_RETURN(const RunRecord run, means_.registry.Run(id_));
  const bool has_begun = HasEnded(run.state) || run.state == RunState::kStarting || run.state == RunState::kRunning;
  if (has_begun || means_.clock.Now() - looked_at_ < kLookAtStart) return absl::OkStatus();
  looked_at_ = means_.clock.Now();
  return LookAndSeeEnd().status();
}

bool JobCollector::WaitsForOthers(const JobOfRun& job) {
  if (job.turn == 0 || job.killed || means_.jobs.IsItsTurn(id_)) return false;
  const absl::Time now = means_.clock.Now();
  if (now - looked_at_ < kLookForOthers) return true;
  looked_at_ = now;
  return false;
}

absl::StatusOr<bool> JobCollector::StepOf(const JobOfRun& job, JobEngine& engine) {
  if (HasNoJob(job)) {
    ASSIGN_OR_RETURN(const bool ended, WaitsForOthers(job) ? HasRunEnded() : LookAndSeeEnd());
    return ended ? Release(job, engine) : false;
  }
  // A job whose supervisor has ended without the run's end ends by itself; then the run is judged, or goes on in
  // another.
  if (collected_ == job.id) {
    ASSIGN_OR_RETURN(const bool ended, LookAndSeeEnd());
    return ended ? Release(job, engine) : false;
  }
  if (const absl::Status sent = Send(job, engine); !sent.ok()) return AfterSilence(job, engine, sent);
  FarMirror::Options options = FarOptionsOf(means_.registry, id_);
  options.fresh = absl::ZeroDuration();
  options.patience = kCollectPatience;
  const auto news = FarMirror(means_.home, engine, means_.clock, id_, job.id).Refresh(options);
  if (!news.ok()) return AfterSilence(job, engine, news.status());
  heard_at_ = means_.clock.Now();
  for (const std::string& problem : news->problems) Say(problem, problem);
  if (news->over && !news->more) return Finish(job, engine);
  RETURN_IF_ERROR(LookAtStart());
  bool more = false;
  if (means_.clock.Now() - output_at_ < kOutputEvery) return false;
  RETURN_IF_ERROR(FetchOutputs(job, engine, /*at_end=*/false, more));
  return false;
}

// Its job is being submitted, or was never taken, or never written down: `muster train` holds the run's lock until it
// has done that, and a run is lost whose lock is free.
absl::StatusOr<bool> JobCollector::AwaitWritten() {
  RETURN_IF_ERROR(means_.registry.Reconcile().status());
  ASSIGN_OR_RETURN(const bool ended, HasRunEnded());
  return ended ? EndUnwritten() : false;
}

absl::StatusOr<bool> JobCollector::EndUnwritten() {
  looks_for_unwritten_ = true;
  const std::optional<JobOfRun> job = JobMarkedFar(means_.home, id_);
  JobEngine* const engine = job.has_value() ? means_.jobs.EngineOf(*job) : nullptr;
  const absl::Status ended = engine == nullptr ? absl::OkStatus() : engine->End(job->id, JobEnd::kCancel);
  if (!ended.ok()) {
    ASSIGN_OR_RETURN(const bool given_up, IsGivenUp());
    return given_up ? absl::StatusOr<bool>(true) : ended;
  }
  UnmarkFar(means_.home, id_);
  return true;
}

absl::StatusOr<bool> JobCollector::Step() {
  ASSIGN_OR_RETURN(const std::optional<JobOfRun> job, ReadJobFile(means_.home.job(id_)));
  const auto run = means_.registry.Run(id_);
  if (absl::IsNotFound(run.status())) {  // it was forgotten
    UnmarkFar(means_.home, id_);
    return true;
  }
  RETURN_IF_ERROR(run.status());
  if (!job.has_value()) return AwaitWritten();
  JobEngine* const engine = means_.jobs.EngineOf(*job);
  if (engine == nullptr) return absl::UnimplementedError(absl::StrCat("this muster has no engine '", job->engine, "'"));
  return StepOf(*job, *engine);
}

bool JobCollector::HasOtherJob() {
  const auto job = ReadJobFile(means_.home.job(id_));
  const JobOfRun before = std::exchange(job_, job.ok() ? job->value_or(JobOfRun()) : job_);
  return job_.id != before.id || job_.again_at != before.again_at;
}

absl::Duration JobCollector::UsualPause() const {
  if (looks_for_unwritten_) return kCollectUnwanted;  // nobody waits for the end of a job that may not be there
  if (job_.id.empty()) return kCollectAtStart;        // it is being submitted
  if (!IsFarWanted(means_.home, id_)) return kCollectUnwanted;
  return means_.clock.Now() - sent_at_ < kStart ? kCollectAtStart : kCollectWanted;
}

void JobCollector::Run(const std::function<void(absl::Duration)>& pause) {
  pause_ = absl::ZeroDuration();
  absl::Duration in_vain;  // without the time that this machine was suspended
  while (IsFar(means_.home, id_)) {
    const absl::StatusOr<bool> done = Step();
    if (done.ok() && *done) return;
    const bool has_other_job = HasOtherJob();
    const absl::Duration usual = UsualPause();
    // What isn't there yet is asked for soon, then more and more seldom.
    const absl::Duration longest = std::min(usual * 6, kLongestCollectPause);
    if (has_other_job)
      pause_ = kCollectAtStart;  // however long nothing was there of the last one
    else
      pause_ = done.ok() ? usual : std::clamp(pause_ * 2, kCollectAtStart, longest);
    const std::string why(done.status().message());
    if (!done.ok()) Say(why, WithoutNumbers(why));
    in_vain = done.ok() || has_other_job ? absl::ZeroDuration() : in_vain + pause_;
    if (in_vain >= kMostInVain && !IsFarLookedAt(means_.home, id_))
      return means_.say(absl::StrCat("nothing was heard of its job for ", absl::FormatDuration(kMostInVain),
                                     "; the next command asks again"));
    pause(pause_);
  }
}

}  // namespace muster
