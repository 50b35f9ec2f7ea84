#include "muster/launch/jobs/job_watch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "muster/base/clock.h"
#include "muster/base/files/file_system.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/engines/rendezvous_file.h"
#include "muster/launch/experiment/handover.h"
#include "muster/launch/experiment/task_logs.h"
#include "muster/launch/jobs/far_jobs.h"
#include "muster/launch/jobs/job_wait.h"
#include "muster/launch/jobs/submit_job.h"
#include "muster/launch/registry/files/machine_id.h"
#include "muster/launch/registry/files/record_file.h"
#include "muster/launch/registry/run_lock.h"
#include "muster/launch/spec/go_on_command.h"

namespace muster {
namespace {

constexpr off_t kMostLastWords = 4 << 10;  // bytes of the end of a job's output that are read
constexpr size_t kMostWaits = 4 << 10;     // bytes of why it waits, or can't begin
constexpr absl::Duration kFetchPatience = absl::Seconds(3);
constexpr int kExitAsked = 128 + SIGTERM;
constexpr int kExitKilled = 128 + SIGKILL;
constexpr int kExitNotBegun = 2;

std::string JobText(const JobOfRun& job, const std::string& title) {
  return absl::StrCat("job ", job.id, " of ", title);
}

// Tasks that have begun have their hosts.
bool MayGiveBack(RunState state) {
  return state == RunState::kCreated || state == RunState::kBuilding || state == RunState::kPending;
}

std::string WhatToDoIfStuck(const ExperimentId& id, const std::string& engine) {
  return absl::StrCat(". Waiting alone doesn't change that: muster kill ", id.ToString(),
                      " ends it; then ask for something else, or for less (its options are in job.sh), and let muster "
                      "train --dry-run ask ",
                      engine, " beforehand");
}

// For whoever reads the log: no supervisor has said it. Only while the run's lock is held, as nobody else writes then.
void SayInLog(const Home& home, const ExperimentId& id, const LostEnd& end, const Clock& clock) {
  TaskLogs logs({.folder = home.logs(id)}, clock);
  logs.Say(end.reason);
  logs.AddState(end.state);
  logs.Flush();
}

// Returns the exit code of a run whose supervisor has left no record: 1 if nobody knows more.
int ExitCodeOf(const JobNews& news) {
  if (news.exit_code.value_or(0) != 0) return *news.exit_code;
  return news.taken_away ? kExitKilled : 1;
}

}  // namespace

JobEngine* JobWatch::EngineOf(const JobOfRun& job) {
  auto& engine = engines_[{job.engine, job.at}];
  if (engine == nullptr) engine = make_(job.engine, job.at);
  return engine.get();
}

const RunInJob* JobWatch::Find(const ExperimentId& id) const {
  const auto found = runs_.find(id);
  return found == runs_.end() ? nullptr : &found->second;
}

void JobWatch::Collect(int64_t number) {
  if (number == 0)
    runs_.clear();
  else
    std::erase_if(runs_, [number](const auto& run) { return run.first.number == number; });
  const auto open = registry_.OpenRuns();
  if (!open.ok()) return;
  for (const ExperimentId& id : *open) {
    if (number != 0 && id.number != number) continue;
    const auto job = ReadJobFile(home_.job(id));
    if (!job.ok() || !job->has_value()) continue;
    runs_[id].job = **job;
    NoteNoJob(runs_[id]);
  }
}

void JobWatch::NoteNoJob(RunInJob& run) {
  const JobEngine* const engine = EngineOf(run.job);
  if (engine == nullptr || !HasNoJob(run.job)) return;
  run.news = {.phase = JobPhase::kWaits, .text = WhyNoJob(run.job), .reason = run.job.no_room};
  run.text =
      absl::StrCat("no job of ", engine->title(), " now: ", run.news.text, "; ", WhenAgain(run.job, clock_.Now()));
}

void JobWatch::NoteIfInPart(const ExperimentId& id, JobNews& news) const {
  const auto record = registry_.Run(id);
  if (news.phase != JobPhase::kWaits || !news.in_part || !record.ok() || MayGiveBack(record->state)) return;
  news.phase = JobPhase::kRuns;
  news.reason = absl::StrCat(news.text, "; the tasks run without that");
}

void JobWatch::NoteWaits(const ExperimentId& id, RunInJob& run) const {
  const std::string said = OneLine(PosixFileSystem().ReadShortFile(home_.job_waits(id), kMostWaits).value_or(""));
  if (said.empty()) return;
  run.news.phase = JobPhase::kWaits;
  absl::StrAppend(&run.news.text, " (", said, ")");
}

void JobWatch::AskEngine(const EngineKey& key, JobEngine& engine) {
  const auto is_asked = [&key](const RunInJob& run) {
    return EngineKey(run.job.engine, run.job.at) == key && !run.job.id.empty() && run.text.empty();
  };
  std::vector<std::string> ids;
  for (const auto& [id, run] : runs_)
    if (is_asked(run)) ids.push_back(run.job.id);
  const auto news = engine.Look(ids);
  for (auto& [id, run] : runs_) {
    if (!is_asked(run)) continue;
    run.text = JobText(run.job, engine.title());
    if (!news.ok()) {
      run.news = {.phase = JobPhase::kRuns};  // nothing follows from not knowing
      absl::StrAppend(&run.text, ", which doesn't answer (", OneLine(std::string(news.status().message())), ")");
      continue;
    }
    run.news = news->at(run.job.id);
    NoteIfInPart(id, run.news);
    FetchFar(id, run, engine);
    if (run.news.phase == JobPhase::kRuns) NoteWaits(id, run);
    if (run.news.phase == JobPhase::kWaits)
      absl::StrAppend(&run.text, ": ", run.news.text, run.news.stuck ? WhatToDoIfStuck(id, engine.title()) : "");
    else if (run.news.phase == JobPhase::kRuns && !run.news.reason.empty())
      absl::StrAppend(&run.text, ": ", run.news.reason);
  }
}

void JobWatch::FetchFar(const ExperimentId& id, RunInJob& run, JobEngine& engine) {
  const bool is_own = access(home_.job(id).c_str(), W_OK) == 0;  // not another user's
  if (!fetches_ || !is_own || !IsFar(home_, id)) return;
  WantFar(home_, id);
  if (run.news.phase != JobPhase::kRuns || RealClock().Now() >= fetch_until_) return;
  const absl::Status fetched = RefreshFar(home_, registry_, engine, RealClock(), id, run.job).status();
  if (absl::IsNotFound(fetched))
    absl::StrAppend(&run.text, ", which is being sent the experiment");
  else if (!fetched.ok() && !absl::IsUnavailable(fetched))
    absl::StrAppend(&run.text, ", of which nothing can be fetched (", OneLine(std::string(fetched.message())), ")");
  if (const auto job = ReadJobFile(home_.job(id)); job.ok() && job->has_value()) run.job = **job;
}

std::vector<std::string> JobWatch::Look(int64_t number) {
  Collect(number);
  fetch_until_ = RealClock().Now() + kFetchPatience;
  std::vector<std::string> lines;
  std::set<EngineKey> keys;
  for (const auto& [id, run] : runs_)
    if (!run.job.id.empty() && run.text.empty()) keys.insert({run.job.engine, run.job.at});
  for (const EngineKey& key : keys)
    if (JobEngine* const engine = EngineOf({.engine = key.first, .at = key.second}); engine != nullptr)
      AskEngine(key, *engine);
  for (auto& [id, run] : runs_) {
    JobEngine* const engine = EngineOf(run.job);
    if (engine == nullptr || run.job.id.empty() || (number != 0 && id.number != number)) continue;
    auto said = Follow(id, run, *engine);
    if (said.ok())
      lines.insert(lines.end(), said->begin(), said->end());
    else
      absl::StrAppend(&run.text, ": ", OneLine(std::string(said.status().message())));
  }
  for (const auto& [id, run] : runs_)
    if (run.job.id.empty()) static_cast<void>(EndGridIfOver(home_, registry_, id.number));
  std::erase_if(runs_, [this](const auto& run) {
    const auto record = registry_.Run(run.first);
    return record.ok() && HasEnded(record->state);
  });
  return lines;
}

absl::StatusOr<std::vector<std::string>> JobWatch::Follow(const ExperimentId& id, RunInJob& run, JobEngine& engine) {
  if (HasNoJob(run.job)) {
    // The engine of the host that has submitted it is the one that is meant.
    const bool is_own =
        run.job.host == MachineId::This().host && IsDue(run.job, clock_.Now()) && IsItsTurn(id, run.job);
    if (!is_own && !run.job.killed) return std::vector<std::string>();
  } else if (run.news.phase == JobPhase::kWaits && run.news.late.empty()) {
    if ((run.job.requeues > 0 || run.job.wants_another) && absl::StrContains(run.news.text, "BeginTime"))
      engine.Hasten(run.job.id);
    return std::vector<std::string>();
  }
  if (run.news.phase == JobPhase::kRuns) return std::vector<std::string>();
  if (access(home_.job(id).c_str(), W_OK) != 0) return std::vector<std::string>();  // another user's
  // A command that holds it does the same now; a supervisor lives.
  const absl::StatusOr<RunLock> lock = RunLock::Take(home_.lock(id));
  if (absl::IsFailedPrecondition(lock.status())) return std::vector<std::string>();
  RETURN_IF_ERROR(lock.status());
  // Either may have changed since the engine was asked.
  const JobOfRun asked_about = run.job;
  ASSIGN_OR_RETURN(const std::optional<JobOfRun> job, ReadJobFile(home_.job(id)));
  ASSIGN_OR_RETURN(const RunRecord record, registry_.Run(id));
  if (HasEnded(record.state) || !job.has_value() || job->id != asked_about.id || job->again_at != asked_about.again_at)
    return std::vector<std::string>();
  run.job = *job;
  if (HasNoJob(run.job)) return run.job.killed ? EndRun(id, run, engine) : TryAgain(id, run, engine);
  if (!run.news.late.empty()) return MayGiveBack(record.state) ? GiveBack(id, run, engine) : std::vector<std::string>();
  if (run.news.phase == JobPhase::kUnknown && !MayJudgeUnknown(id, run, record.state))
    return std::vector<std::string>();
  // A job that may have been cancelled, and is forgotten, isn't made again.
  const bool may_go_on = run.job.wants_another && !(run.job.doubtful && run.news.phase == JobPhase::kUnknown);
  if (!may_go_on || run.job.killed || run.news.cancelled) return EndRun(id, run, engine);
  // A job of a far home may say for ever that it wants another.
  ASSIGN_OR_RETURN(const JobTerms terms, TermsOf(id, engine));
  if (run.job.requeues >= terms.max_requeues) return EndRun(id, run, engine);
  return SubmitAgain(id, run, engine);
}

bool JobWatch::IsItsTurn(const ExperimentId& id) {
  Collect(id.number);
  const RunInJob* const run = Find(id);
  return run == nullptr || IsItsTurn(id, run->job);
}

// The first one that waits comes first, so that two collectors don't take the same turn: it has a job from the moment
// in which its file says so.
bool JobWatch::IsItsTurn(const ExperimentId& id, const JobOfRun& job) const {
  if (job.turn == 0) return true;
  int with_jobs = 0;
  for (const auto& [other, its] : runs_) {
    if (other.number != id.number || other.run == 0) continue;
    if (its.job.turn > 0 && !its.job.killed && other < id) return false;
    if (its.job.turn == 0) ++with_jobs;
  }
  return with_jobs < job.turn;
}

absl::StatusOr<JobTerms> JobWatch::TermsOf(const ExperimentId& id, const JobEngine& engine) {
  ASSIGN_OR_RETURN(const NewExperiment experiment, registry_.Specification(id.number));
  return engine.TermsOf(experiment.options.hosts);
}

absl::StatusOr<std::vector<std::string>> JobWatch::GiveBack(const ExperimentId& id, RunInJob& run, JobEngine& engine) {
  if (run.job.killed) return std::vector<std::string>();  // it is being cancelled
  ASSIGN_OR_RETURN(const JobTerms terms, TermsOf(id, engine));
  JobOfRun left = run.job;
  NoteNoRoom(left, run.news.late, terms, clock_.Now());
  if (run.news.stuck || !MayTryAgain(left, terms)) {
    run.news.text = left.tries == 1 ? left.no_room : WhyNoJob(left);
    auto said = EndRun(id, run, engine);
    if (said.ok()) static_cast<void>(engine.End(run.job.id, JobEnd::kGiveBack));  // its collector does that, too
    return said;
  }
  // Its supervisor may say that it was ended, which counts for nothing.
  RETURN_IF_ERROR(LeaveJob(home_, registry_, id, left));
  static_cast<void>(engine.End(left.id, JobEnd::kGiveBack));  // also tried before the next one is submitted
  run.job = left;
  NoteNoJob(run);
  return std::vector<std::string>{absl::StrCat("experiment ", id.ToString(), ": job ", left.id, " of ", engine.title(),
                                               " was given back; ", WhenAgain(left, clock_.Now()))};
}

// The next name is written down before it is submitted, so that a process that finds it ends what may be there of it.
absl::StatusOr<std::vector<std::string>> JobWatch::TryAgain(const ExperimentId& id, RunInJob& run, JobEngine& engine) {
  ASSIGN_OR_RETURN(const JobTerms terms, TermsOf(id, engine));
  if (run.job.turn == 0) RETURN_IF_ERROR(engine.End(run.job.id, JobEnd::kGiveBack));
  if (std::exchange(run.job.turn, 0) > 0) run.job.no_room = "its turn has come, and it couldn't be submitted yet";
  const std::string script = home_.job_script(id);
  ASSIGN_OR_RETURN(const std::string text, PosixFileSystem().ReadFile(script));
  RETURN_IF_ERROR(ReplaceFile(script, engine.ScriptAnew(text), Durability::kDisk));
  chmod(script.c_str(), 0700);
  if (const std::string next = engine.IdIn(script); !next.empty()) run.job.id = next;
  if (IsFar(home_, id)) RETURN_IF_ERROR(MarkFar(home_, id, run.job));
  RETURN_IF_ERROR(WriteJobFile(home_.job(id), run.job));
  const absl::StatusOr<std::string> submitted = engine.Submit(script, "");
  if (!submitted.ok()) return AfterNoJob(id, run, terms, submitted.status());
  run.job.id = *submitted;
  run.job.again_at = 0;
  run.job.no_room.clear();
  run.job.restarts = 0;
  run.news = {.phase = JobPhase::kWaits};
  run.text = JobText(run.job, engine.title());
  RETURN_IF_ERROR(WriteJobFile(home_.job(id), run.job));
  ASSIGN_OR_RETURN(const bool killed, EndIfKilled(id, run, engine));
  if (killed) return EndRun(id, run, engine);
  return std::vector<std::string>{
      absl::StrCat("experiment ", id.ToString(), " is job ", run.job.id, " of ", engine.title(), " now")};
}

// A kill writes its note and reads then which job there is: either it finds the one that has just been written, or the
// note is found here.
absl::StatusOr<bool> JobWatch::EndIfKilled(const ExperimentId& id, RunInJob& run, JobEngine& engine) {
  ASSIGN_OR_RETURN(const std::optional<JobOfRun> now, ReadJobFile(home_.job(id)));
  run.job.killed = now.has_value() && now->killed;
  // One that can't be told now finds that its run has ended, and a collector goes on telling it.
  if (run.job.killed) static_cast<void>(engine.End(run.job.id, JobEnd::kCancel));
  return run.job.killed;
}

absl::StatusOr<std::vector<std::string>> JobWatch::AfterNoJob(const ExperimentId& id, RunInJob& run,
                                                              const JobTerms& terms, const absl::Status& why) {
  const bool has_no_room = absl::IsResourceExhausted(why);
  if (has_no_room)
    NoteNoRoom(run.job, std::string(why.message()), terms, clock_.Now());
  else
    PutOff(run.job, terms, clock_.Now());
  RETURN_IF_ERROR(WriteJobFile(home_.job(id), run.job));
  NoteNoJob(run);
  if (has_no_room && MayTryAgain(run.job, terms)) return std::vector<std::string>();
  if (!has_no_room && !absl::IsInvalidArgument(why)) return why;  // it can't be asked now
  const std::string reason = has_no_room ? WhyNoJob(run.job) : std::string(why.message());
  RETURN_IF_ERROR(EndLostInJob(home_, registry_, id, {.reason = reason, .exit_code = 1}));
  return std::vector<std::string>{absl::StrCat("experiment ", id.ToString(), ": ", reason)};
}

bool JobWatch::MayJudgeUnknown(const ExperimentId& id, RunInJob& run, RunState state) const {
  if (run.job.host != MachineId::This().host) {
    absl::StrAppend(&run.text, ", unknown here: ", run.job.host, " submitted it");
    return false;
  }
  const std::optional<absl::Duration> silent = registry_.SinceRenewal(id);
  return state == RunState::kCreated || !silent.has_value() || *silent >= kSurelyAlive;
}

absl::StatusOr<std::vector<std::string>> JobWatch::SubmitAgain(const ExperimentId& id, RunInJob& run,
                                                               JobEngine& engine) {
  // So that no job is submitted which can't be written down.
  RETURN_IF_ERROR(WriteJobFile(home_.job(id), run.job));
  // The others of its chain have gone on without it.
  std::vector<std::string> after;
  for (const auto& [other, its] : runs_)
    if (other.number == id.number && other != id && id.run > 0 && its.job.chain == run.job.chain && !its.job.id.empty())
      after.push_back(its.job.id);
  const std::string before = run.job.id;
  ASSIGN_OR_RETURN(run.job.id, engine.Submit(home_.job_script(id), absl::StrJoin(after, ":")));
  run.job.host = MachineId::This().host;
  run.job.restarts = 0;
  run.job.wants_another = run.job.doubtful = false;
  ++run.job.requeues;
  run.text = JobText(run.job, engine.title());
  RETURN_IF_ERROR(WriteJobFile(home_.job(id), run.job));
  ASSIGN_OR_RETURN(const bool killed, EndIfKilled(id, run, engine));
  if (killed) return EndRun(id, run, engine);
  return std::vector<std::string>{absl::StrCat("experiment ", id.ToString(), ": the time of job ", before,
                                               " was over; it goes on in job ", run.job.id, " of ", engine.title())};
}

absl::StatusOr<std::vector<std::string>> JobWatch::EndRun(const ExperimentId& id, const RunInJob& run,
                                                          const JobEngine& engine) {
  const std::string job = JobText(run.job, engine.title());
  LostEnd end;
  if (run.job.killed) {
    end = {.state = RunState::kKilled, .reason = "it was killed", .exit_code = kExitAsked};
  } else if (run.news.cancelled) {
    end = {.state = RunState::kKilled, .reason = absl::StrCat("its ", job, " was cancelled"), .exit_code = kExitAsked};
  } else if (const std::string why = WhyNotBegun(id, run); !why.empty()) {
    end = {.reason = why, .exit_code = kExitNotBegun};
  } else {
    end = {.state = RunState::kFailed,
           .reason =
               absl::StrCat("its ", job, " has ended",
                            run.news.text.empty() ? absl::StrCat(", cause unknown to ", engine.title(), HintAtHome(id))
                                                  : absl::StrCat(": ", run.news.text),
                            run.job.wants_another || run.news.taken_away ? GoesOn(id) : LastWords(id)),
           .exit_code = ExitCodeOf(run.news)};
  }
  const auto before = registry_.Run(id);
  RETURN_IF_ERROR(EndLostInJob(home_, registry_, id, end));
  RemoveHandover(home_, id);
  if (before.ok()) unlink(RendezvousFileIn(home_.folder(id), before->run_id).c_str());
  if (!IsFar(home_, id)) SayInLog(home_, id, end, clock_);
  return std::vector<std::string>{absl::StrCat("experiment ", id.ToString(), ": ", end.reason)};
}

std::string JobWatch::WhyNotBegun(const ExperimentId& id, const RunInJob& run) const {
  const std::string over = PosixFileSystem().ReadShortFile(home_.job_over(id), kMostWaits).value_or("");
  const std::string said = OneLine(std::string(absl::StripAsciiWhitespace(over)));
  if (!said.empty()) return said;
  if (run.news.opened_nothing.empty() || !HasNoOutput(id)) return "";
  return absl::StrCat(run.news.opened_nothing, " doesn't see MUSTER_HOME (", home_.path(),
                      "): put it into a folder that all nodes see");
}

bool JobWatch::HasNoOutput(const ExperimentId& id) const {
  const std::string output = home_.job_output(id);
  // The user may have named another file.
  return !PosixFileSystem().Exists(output) &&
         absl::StrContains(PosixFileSystem().ReadFile(home_.job_script(id)).value_or(""), output);
}

std::string JobWatch::HintAtHome(const ExperimentId& id) const {
  return HasNoOutput(id) ? absl::StrCat("; it has made no ", home_.job_output(id),
                                        ": look whether its nodes see MUSTER_HOME (", home_.path(), ")")
                         : "";
}

std::string JobWatch::GoesOn(const ExperimentId& id) {
  const absl::StatusOr<NewExperiment> experiment = registry_.Specification(id.number);
  return GoesOnBy(id.ToString(), experiment.ok() ? experiment->file_name : "");
}

std::string JobWatch::LastWords(const ExperimentId& id) const {
  const int fd = open(home_.job_output(id).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return "";
  const off_t size = lseek(fd, 0, SEEK_END);
  std::string text(static_cast<size_t>(std::min(size, kMostLastWords)), '\0');
  const ssize_t got =
      Uninterrupted([&] { return pread(fd, text.data(), text.size(), size - static_cast<off_t>(text.size())); });
  close(fd);
  text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipWhitespace());
  return lines.empty() ? "" : absl::StrCat("; its last line: ", OneLine(lines.back()));
}

}  // namespace muster
