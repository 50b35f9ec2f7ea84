#include "muster/launch/jobs/supervise_in_job.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "muster/base/clock.h"
#include "muster/base/status_macros.h"
#include "muster/launch/engines/rendezvous_file.h"
#include "muster/launch/experiment/await_room.h"
#include "muster/launch/experiment/experiment_run.h"
#include "muster/launch/jobs/job_ending.h"
#include "muster/launch/jobs/job_resources.h"
#include "muster/launch/jobs/submit_job.h"
#include "muster/launch/registry/files/job_file.h"
#include "muster/launch/registry/files/record_file.h"
#include "muster/launch/registry/run_lock.h"

namespace muster {
namespace {

// What an agent takes to end its tasks when its grace is over, and a bit.
constexpr absl::Duration kEndOnHosts = absl::Seconds(5);
// An earlier life's lock goes when its process has been cleaned away.
constexpr absl::Duration kLockPatience = absl::Seconds(30);
// Less than an agent's least grace.
constexpr absl::Duration kReadPatience = absl::Seconds(5);
constexpr int kPauseMs = 100;
constexpr int kExitOfRefused = 2;

class LifeInJob {
 public:
  LifeInJob(const Home& home, const ExperimentId& id, JobEngine& engine, Registry& registry)
      : home_(home), id_(id), engine_(engine), registry_(registry) {}

  absl::StatusOr<int> Live(SupervisorSetting setting);
  absl::StatusOr<int> Refuse(const std::string& why);

 private:
  // Makes the job the run's own. Cancelled: there is nothing to do any more.
  absl::Status Join();
  absl::StatusOr<RunLock> TakeLock() const;
  std::string JobName() const { return absl::StrCat("job ", own_.id, " of ", engine_.title()); }
  // Returns what an earlier life has left that can be gone on with. An error may go away.
  absl::StatusOr<std::optional<Handover>> FindLeft();
  // Waits for room until `until`.
  std::optional<Handover> AwaitLeft(absl::Time until);
  // Lets the run begin once more if an earlier life has begun it.
  absl::Status BeginAgainIfDue(const NewExperiment& experiment);
  absl::Status GoOn(const ExperimentEnd& end, const NewExperiment& experiment, const SupervisorSetting& setting);
  // Writes the script of another job, which is told of its end as early as this one's end has shown.
  absl::Status WriteNextScript(const NewExperiment& experiment, const SupervisorSetting& setting) const;
  // What follows the run's end.
  absl::Status EndForGood();
  // Whether somebody has asked for the run's end, as the file says now.
  bool WasKilled();
  absl::Status Write();

  const Home& home_;
  const ExperimentId id_;
  JobEngine& engine_;
  Registry& registry_;
  OwnJob own_;
  JobOfRun job_;
  bool begun_anew_ = false;   // by the engine, since the last life
  std::string begins_again_;  // JobLimits::begins_again
};

absl::Status LifeInJob::Join() {
  ASSIGN_OR_RETURN(own_, engine_.Own());
  ASSIGN_OR_RETURN(const std::optional<JobOfRun> written, ReadJobFile(home_.job(id_)));
  ASSIGN_OR_RETURN(const RunRecord run, registry_.Run(id_));
  job_ = written.value_or(JobOfRun());
  if (written.has_value() && job_.id != own_.id && !job_.wants_another)
    return absl::FailedPreconditionError(
        absl::StrCat("experiment ", id_.ToString(), " is in job ", job_.id, ", not in this one, ", own_.id));
  const bool is_same_job = job_.id == own_.id;
  const int restarts = own_.restarts - (is_same_job ? job_.restarts : 0);  // since it was looked at last
  begun_anew_ = restarts > 0 || job_.wants_another;
  if (run.state == RunState::kFinished || job_.killed || (HasEnded(run.state) && !begun_anew_))
    return absl::CancelledError(absl::StrCat("experiment ", id_.ToString(), " has ended before"));
  // A command that has submitted this job because another was wanted has counted that.
  job_.requeues += is_same_job ? restarts : job_.wants_another ? 1 : 0;
  job_.restarts = own_.restarts;
  job_.wants_another = job_.doubtful = false;
  if (begun_anew_) RemoveHandover(home_, id_);  // that of a job, or an allocation, that is gone
  if (!written.has_value()) job_.at = engine_.at();
  job_.engine = engine_.name();
  job_.id = own_.id;
  if (job_.host.empty()) job_.host = own_.submitted_from;  // the command that has submitted it was killed
  return Write();
}

bool LifeInJob::WasKilled() {
  const auto written = ReadJobFile(home_.job(id_));
  if (written.ok() && written->has_value() && (*written)->killed) job_.killed = true;
  return job_.killed;
}

absl::Status LifeInJob::Write() { return WriteJobFile(home_.job(id_), job_); }

absl::StatusOr<RunLock> LifeInJob::TakeLock() const {
  const absl::Time until = RealClock().Now() + kLockPatience;
  for (;;) {
    absl::StatusOr<RunLock> lock = RunLock::Take(home_.lock(id_));
    if (!absl::IsFailedPrecondition(lock.status()) || RealClock().Now() > until) return lock;
    poll(nullptr, 0, kPauseMs);
  }
}

// A run that is coming to its end isn't gone on with: it has no states for that.
absl::StatusOr<std::optional<Handover>> LifeInJob::FindLeft() {
  ASSIGN_OR_RETURN(const RunRecord run, registry_.Run(id_));
  ASSIGN_OR_RETURN(const std::vector<TaskRecord> tasks, registry_.Tasks(id_));
  absl::StatusOr<Handover> left = ReadHandover(home_, id_);
  if (absl::IsNotFound(left.status()) || absl::IsDataLoss(left.status())) return std::nullopt;
  RETURN_IF_ERROR(left.status());
  const auto fails = [](const TaskRecord& task) {
    return task.state == RunState::kFailed || task.state == RunState::kKilled;
  };
  if (run.state != RunState::kRunning || left->job != JobName() || std::any_of(tasks.begin(), tasks.end(), fails))
    return std::nullopt;
  for (const auto& [task, host] : left->placement)
    if (std::find(own_.hosts.begin(), own_.hosts.end(), host) == own_.hosts.end()) return std::nullopt;
  ++left->supervisor;
  RETURN_IF_ERROR(WriteHandover(home_, id_, *left));  // the agents must not see a number twice
  return *std::move(left);
}

// What can't be read or written for a moment must not cost the tasks that run.
std::optional<Handover> LifeInJob::AwaitLeft(absl::Time until) {
  std::optional<Handover> left;
  const auto find = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(left, FindLeft());
    return absl::OkStatus();
  };
  const absl::Time until_read = RealClock().Now() + kReadPatience;
  absl::Status found = AwaitRoom(find, until);
  while (!found.ok() && !absl::IsResourceExhausted(found) && RealClock().Now() < until_read) {
    poll(nullptr, 0, kPauseMs);
    found = AwaitRoom(find, until);
  }
  if (!found.ok())
    std::fprintf(stderr, "muster: can't go on with the tasks of the earlier supervisor: %s\n",
                 std::string(found.message()).c_str());
  return left;
}

absl::Status LifeInJob::BeginAgainIfDue(const NewExperiment& experiment) {
  RemoveHandover(home_, id_);
  RunRecord run;
  RETURN_IF_ERROR(AwaitRoom([&]() -> absl::Status {
    ASSIGN_OR_RETURN(run, registry_.Run(id_));  // which may freshen the index
    return absl::OkStatus();
  }));
  if (run.state == RunState::kCreated) return absl::OkStatus();
  if (!HasEnded(run.state)) {
    std::fprintf(stderr, "muster: an earlier supervisor of experiment %s was killed: ending what it has left\n",
                 id_.ToString().c_str());
    // What the engine can't end ends by itself.
    const absl::Duration patience = experiment.options.hosts.grace + kEndOnHosts;
    while (!engine_.EndLeftSteps(own_.id) && registry_.SinceRenewal(id_).value_or(patience) < patience)
      poll(nullptr, 0, 10 * kPauseMs);
    unlink(RendezvousFileIn(home_.folder(id_), run.run_id).c_str());
  }
  begins_again_ = begun_anew_ ? absl::StrCat(engine_.title(), " has begun its job anew")
                              : "its supervisor was killed; another one begins the run once more";
  return AwaitRoom([&] { return registry_.StartOver(id_, begins_again_); });
}

absl::StatusOr<int> LifeInJob::Live(SupervisorSetting setting) {
  const absl::Time began = RealClock().Now();
  ASSIGN_OR_RETURN(RunLock lock, TakeLock());
  RETURN_IF_ERROR(AwaitRoom([this] { return Join(); }));
  if (own_.hosts.empty()) return absl::InvalidArgumentError(absl::StrCat(JobName(), " has no hosts"));
  ASSIGN_OR_RETURN(const NewExperiment experiment, registry_.Specification(id_.number));
  // Its agents must still hear from it within their grace.
  std::optional<Handover> left = AwaitLeft(began + experiment.options.hosts.grace - kReadPatience);
  if (!left.has_value()) RETURN_IF_ERROR(BeginAgainIfDue(experiment));
  const JobTerms terms = engine_.TermsOf(experiment.options.hosts);
  JobLimits limits{.name = JobName(),
                   .run_id = own_.run,
                   .notice_file = home_.job_notice(id_),
                   .goes_on = job_.requeues < terms.max_requeues,
                   .was_killed = [this] { return WasKilled(); },
                   .why_ending =
                       [this, cancels = terms.signal_cancels] {
                         return cancels ? EndingOfJob{.what = EndingOfJob::What::kCancelled}
                                        : EndingOf(engine_, own_, RealClock(), absl::SleepFor);
                       },
                   .left = std::move(left),
                   .begins_again = begins_again_,
                   .says = own_.says};
  for (const std::string& host : own_.hosts) limits.hosts.push_back({.name = host});
  const absl::Duration notice = NoticeBeforeEnd(experiment.options, terms, job_.ending_seconds);
  limits.end_at = [this, began = RealClock().Now(), notice] {
    const absl::Time end = engine_.EndTime(own_.id).value_or(absl::InfiniteFuture());
    // A job with little time isn't all notice.
    return end - std::min(notice, (end - began) / 3);
  };
  setting.engine = engine_.name();
  setting.job = std::move(limits);
  ASSIGN_OR_RETURN(const ExperimentEnd end, RunExperiment(home_, registry_, id_, std::move(lock), setting));
  job_.ending_seconds = absl::ToDoubleSeconds(end.ending);
  if (!end.goes_on) {
    RETURN_IF_ERROR(EndForGood());
    return end.exit_code;
  }
  RETURN_IF_ERROR(GoOn(end, experiment, setting));
  return 0;
}

absl::Status LifeInJob::EndForGood() {
  static_cast<void>(Write());
  if (id_.run > 0) FreeNextOfGrid(engine_, home_, registry_, id_);
  return id_.run > 0 ? EndGridIfOver(home_, registry_, id_.number) : absl::OkStatus();
}

absl::StatusOr<int> LifeInJob::Refuse(const std::string& why) {
  ASSIGN_OR_RETURN(const RunLock lock, TakeLock());
  RETURN_IF_ERROR(Join());
  RETURN_IF_ERROR(registry_.EndLost(id_, {.reason = why, .exit_code = kExitOfRefused}));
  RETURN_IF_ERROR(EndForGood());
  return kExitOfRefused;
}

absl::Status LifeInJob::WriteNextScript(const NewExperiment& experiment, const SupervisorSetting& setting) const {
  ASSIGN_OR_RETURN(const ExperimentFile file, ParseExperimentFile(experiment.file_text, experiment.file_name));
  return WriteJobScript(engine_,
                        {.home = home_,
                         .muster = setting.muster_command,
                         .users_umask = setting.users_umask,
                         .file = file,
                         .experiment = experiment},
                        id_, /*after=*/"", job_.ending_seconds);
}

// From `wants_another` on, a command that finds that the job has ended submits the next one. Slurm would requeue a job
// that somebody has cancelled, too, so a supervisor that can't ask what has become of its job leaves that to commands.
absl::Status LifeInJob::GoOn(const ExperimentEnd& end, const NewExperiment& experiment,
                             const SupervisorSetting& setting) {
  // Without it, the script of this job will do.
  static_cast<void>(WriteNextScript(experiment, setting));
  job_.wants_another = !end.begun_anew;
  job_.doubtful = end.doubtful;
  RETURN_IF_ERROR(Write());
  if (end.begun_anew) return registry_.StartOver(id_, absl::StrCat(engine_.title(), " begins its job anew"));
  RETURN_IF_ERROR(registry_.StartOver(id_, "it goes on, as the time of its job was over"));
  const absl::Status requeued =
      end.doubtful ? absl::UnavailableError("nor be asked about it") : engine_.Requeue(own_.id);
  if (!requeued.ok())
    std::fprintf(stderr, "muster: %s can't begin the job anew (%s): the next muster command about it submits another\n",
                 engine_.title().c_str(), std::string(requeued.message()).c_str());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> SuperviseInJob(const Home& home, const ExperimentId& id, JobEngine& engine,
                                   SupervisorSetting setting) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Registry> registry, OpenOnceThereIsRoom(home));
  return LifeInJob(home, id, engine, *registry).Live(std::move(setting));
}

absl::StatusOr<int> RefuseInJob(const Home& home, const ExperimentId& id, JobEngine& engine, const std::string& why) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Registry> registry, OpenOnceThereIsRoom(home));
  return LifeInJob(home, id, engine, *registry).Refuse(why);
}

}  // namespace muster
