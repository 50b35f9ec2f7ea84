#include "muster/launch/supervise/task_supervisor.h"

#include <signal.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster {
namespace {

bool IsServer(const TaskId& task) { return task.job == kPsJob; }

// Returns whether a run of experiments needs this task to end well in order to succeed.
bool IsTrainer(const TaskId& task) { return !IsServer(task) && task.job != kEvaluatorJob; }

// Programs give up without their ps, for which its absent host is to blame, not they.
bool LacksItsServer(const TaskId& task, const PlaceSearch& places) { return !IsServer(task) && places.HasAny(kPsJob); }

// Longest pause before a restart, unless the policy's own is longer.
constexpr absl::Duration kLongestPause = absl::Seconds(10);

}  // namespace

TaskSupervisor::TaskSupervisor(const std::vector<TaskId>& running, const TaskSupervisorOptions& options,
                               Backend& backend, const Clock& clock, Report report)
    : options_(options),
      backend_(backend),
      clock_(clock),
      report_(std::move(report)),
      running_(running.begin(), running.end()),
      idle_(options.idle_grace, options.cpu_seconds) {
  for (const TaskId& task : running) {
    lives_[task].began = clock.Now();
    if (const auto before = options_.restarts.find(task); before != options_.restarts.end())
      lives_[task].restarts = before->second;
    if (options_.ended.contains(task)) running_.erase(task);
  }
  if (options_.ended.empty()) return;
  if (options_.ended.contains(options_.chief)) {
    chief_code_ = 0;
    WatchIdleWorkers();
  }
  SucceedIfDone();
}

void TaskSupervisor::OnExit(const TaskId& task, const ExitStatus& status) {
  if (running_.erase(task) == 0) return;
  lives_.at(task).last = status;
  if (status.killed_from == KilledFrom::kOutOfMemory) ++lives_.at(task).out_of_memory;
  idle_.Forget(task);
  const bool hung = ended_idle_.erase(task) > 0;
  if (hung && phase_ == Phase::kTraining) {
    Tell(task, TaskChange::kKilled);
    SucceedIfDone();
    if (done()) deadline_ = absl::InfiniteFuture();
    return;
  }
  const bool by_itself = phase_ == Phase::kTraining || phase_ == Phase::kTrained;
  if (by_itself && Heal(task, status)) return;
  if (by_itself && !status.ok() && !IsGivenUp(task, status) && !first_failure_.has_value())
    first_failure_ = Failure{task, status, why_not_started_};
  if (task == options_.chief) chief_code_ = status.ShellCode();
  if (by_itself) {
    Tell(task, status.ok() ? TaskChange::kFinished : TaskChange::kFailed);
  } else {
    Tell(task, succeeded_ ? TaskChange::kFinished : TaskChange::kKilled);
  }
  if (options_.rule == EndRule::kChiefDecides) {
    FollowTheChief(task, status, by_itself);
  } else if (by_itself) {
    FollowAll(task, status);
  }
  if (phase_ == Phase::kEnding) AskServersToEnd();
  if (done()) deadline_ = absl::InfiniteFuture();
}

RestartPolicy TaskSupervisor::PolicyOf(const TaskId& task) const {
  return options_.restart_policy ? options_.restart_policy(task) : RestartPolicy{.when = RestartWhen::kNever};
}

bool TaskSupervisor::MayHeal(const TaskId& task, const ExitStatus& status) const {
  const RestartPolicy policy = PolicyOf(task);
  if (server_lost_ || succeeded_) return false;
  if (phase_ == Phase::kTrained && IsGivenUp(task, status)) return false;  // nobody waits for another life of it
  if (lives_.at(task).restarts >= policy.limit && !LacksItsServer(task, places_)) return false;
  if (policy.when != RestartWhen::kOnFailure) return policy.when == RestartWhen::kAlways;
  // Others may have used the memory the first time.
  const bool once_more = status.killed_from != KilledFrom::kOutOfMemory || lives_.at(task).out_of_memory == 1;
  return once_more && options_.retryable(status);
}

// Its end isn't one of its own, and nobody needs it.
bool TaskSupervisor::IsGivenUp(const TaskId& task, const ExitStatus& status) const {
  return status.by_its_host && options_.dispensable(task);
}

bool TaskSupervisor::Heal(const TaskId& task, const ExitStatus& status) {
  if (!MayHeal(task, status)) return false;
  const RestartPolicy policy = PolicyOf(task);
  Life& life = lives_.at(task);
  const bool counts = !LacksItsServer(task, places_);
  if (counts) ++life.restarts;
  life.short_lives = clock_.Now() - life.began < options_.steady_life ? life.short_lives + 1 : 1;
  absl::Duration pause = life.short_lives == 1 ? absl::ZeroDuration()
                                               : std::min(std::max(kLongestPause, policy.pause),
                                                          policy.pause * (1 << std::min(life.short_lives - 2, 10)));
  if (status.at_signal || status.ShellCode() == 128 + SIGTERM) pause = std::max(pause, options_.pause_after_sigterm);
  report_(absl::StrCat(NameOf(task), " ", status.ToString(), ": starting it again",
                       pause > absl::ZeroDuration() ? absl::StrCat(" in ", absl::FormatDuration(pause)) : "",
                       counts ? absl::StrCat(" (restart ", life.restarts, " of ", policy.limit, ")")
                              : " (not counted, as a ps has no place)"));
  restarts_due_[task] = clock_.Now() + pause;
  Tell(task, TaskChange::kStarting);
  if (pause == absl::ZeroDuration()) Restart(task);
  return true;
}

bool TaskSupervisor::MayReplace(const TaskId& task) const {
  const bool trains = phase_ == Phase::kTraining || phase_ == Phase::kTrained;
  return trains && running_.contains(task) && MayHeal(task, {.signal = SIGKILL});
}

void TaskSupervisor::Replace(const TaskId& task, const ExitStatus& status) {
  idle_.Forget(task);
  ended_idle_.erase(task);
  lives_.at(task).last = status;
  Tell(task, TaskChange::kStarting);
  Restart(task);
}

std::string TaskSupervisor::HowItEnded(const TaskId& task, const ExitStatus& status) const {
  const int restarts = lives_.at(task).restarts;
  return absl::StrCat(NameOf(task), " ", status.ToString(),
                      restarts > 0 ? absl::StrCat(" after ", restarts, " of ", PolicyOf(task).limit, " restarts") : "");
}

void TaskSupervisor::Restart(const TaskId& task) {
  restarts_due_.erase(task);
  lives_.at(task).began = clock_.Now();
  running_.insert(task);
  options_.relaunch(task);
}

bool TaskSupervisor::SeekPlaceAgain(const TaskId& task, const absl::Status& why) {
  const bool trains = phase_ == Phase::kTraining || (phase_ == Phase::kTrained && !options_.dispensable(task));
  if (!trains || server_lost_ || succeeded_ || PolicyOf(task).when == RestartWhen::kNever) return false;
  const std::optional<PlaceSearch::NextTry> next = places_.Next(task, clock_.Now());
  if (!next.has_value()) return false;
  if (next->is_news)
    report_(absl::StrCat(NameOf(task), " can't be started now: ", why.message(), "; it is tried again for ",
                         absl::FormatDuration(absl::Ceil(next->left, absl::Seconds(1))),
                         ", without a restart counted"));
  running_.erase(task);
  idle_.Forget(task);
  ended_idle_.erase(task);
  restarts_due_[task] = next->when;
  Tell(task, TaskChange::kStarting);
  return true;
}

void TaskSupervisor::OnStarted(const TaskId& task) {
  places_.OnFound(task);
  ended_idle_.erase(task);
  if (running_.contains(task)) Tell(task, TaskChange::kRunning);
}

void TaskSupervisor::OnNotStarted(const TaskId& task, const absl::Status& why) {
  report_(absl::StrCat(NameOf(task), " could not be started again: ", why.message()));
  why_not_started_ = std::string(why.message());
  OnExit(task, {.code = 1, .by_its_host = lives_.at(task).last.by_its_host});
  why_not_started_.clear();
}

void TaskSupervisor::OnNoPlace(const TaskId& task, const absl::Status& why) {
  if (!running_.contains(task) || SeekPlaceAgain(task, why)) return;
  if (!ending()) report_(absl::StrCat(NameOf(task), " has found no place: ", why.message()));
  why_not_started_ = std::string(why.message());
  OnExit(task, {.signal = SIGKILL, .by_its_host = true});
  why_not_started_.clear();
}

// The run is over: tasks that wait for a restart don't get it.
void TaskSupervisor::DropRestarts() {
  const std::map<TaskId, absl::Time> dropped = std::exchange(restarts_due_, {});
  for (const auto& [task, due] : dropped) {
    if (task == options_.chief) chief_code_ = lives_.at(task).last.ShellCode();
    Tell(task, succeeded_ ? TaskChange::kFinished : TaskChange::kKilled);
  }
}

void TaskSupervisor::Tell(const TaskId& task, TaskChange change) {
  if (options_.changed) options_.changed(task, change, lives_.at(task).last);
}

std::string TaskSupervisor::NameOf(const TaskId& task) const {
  return options_.name ? options_.name(task) : task.ToString();
}

std::string TaskSupervisor::NamesOf(const std::set<TaskId>& tasks) const {
  return absl::StrJoin(tasks, ", ", [this](std::string* out, const TaskId& task) { out->append(NameOf(task)); });
}

std::set<TaskId> TaskSupervisor::TheRest() const {
  std::set<TaskId> rest = running_;
  for (const auto& [task, due] : restarts_due_) rest.insert(task);
  return rest;
}

absl::Time TaskSupervisor::deadline() const {
  absl::Time next = deadline_;
  for (const auto& [task, due] : restarts_due_) next = std::min(next, due);
  if (phase_ == Phase::kTraining) {
    next = std::min(next, idle_.deadline());
    for (const auto& [task, due] : ended_idle_) next = std::min(next, due);
  }
  return next;
}

int TaskSupervisor::exit_code() const {
  if (options_.rule == EndRule::kChiefDecides) return chief_code_;
  if (succeeded_) return 0;
  return first_failure_.has_value() ? first_failure_->status.ShellCode() : chief_code_;
}

void TaskSupervisor::FollowTheChief(const TaskId& task, const ExitStatus& status, bool by_itself) {
  if (by_itself && !status.ok() && IsServer(task)) server_lost_ = true;
  if (task == options_.chief) {
    OnChiefExit(status);
  } else if (by_itself && !status.ok() && !running_.empty()) {
    ReportFailure(task, status);
  }
  if (phase_ == Phase::kTrained) EndServersOfTheLost();
}

void TaskSupervisor::OnChiefExit(const ExitStatus& status) {
  if (phase_ != Phase::kTraining || done()) return;
  if (!status.ok()) return EndTheRest(options_.chief, status);
  phase_ = Phase::kTrained;
  deadline_ = clock_.Now() + options_.stop_grace;
  DropSearches();
}

// Nobody waits until a dispensable task has found a place.
void TaskSupervisor::DropSearches() {
  for (const auto& [task, due] : std::map(restarts_due_)) {
    if (!places_.IsSought(task) || !options_.dispensable(task)) continue;
    restarts_due_.erase(task);
    Tell(task, TaskChange::kKilled);
  }
}

void TaskSupervisor::FollowAll(const TaskId& task, const ExitStatus& status) {
  if (!status.ok() && !succeeded_ && !IsGivenUp(task, status)) return EndTheRest(task, status);
  if (!status.ok() && !running_.empty()) ReportFailure(task, status);
  if (task == options_.chief && !succeeded_) WatchIdleWorkers();
  SucceedIfDone();
}

// Only the program knows what a worker does after the chief's end. But one that does nothing at all would keep the run
// for ever.
void TaskSupervisor::WatchIdleWorkers() {
  std::vector<TaskId> trainers;
  std::copy_if(running_.begin(), running_.end(), std::back_inserter(trainers), IsTrainer);
  idle_.Watch(trainers, clock_.Now());
}

void TaskSupervisor::EndIdleWorkers() {
  const absl::Time now = clock_.Now();
  for (const TaskId& task : idle_.Take(now)) {
    report_(absl::StrCat(NameOf(task), " has neither written nor computed anything for ",
                         absl::FormatDuration(options_.idle_grace), " since ", NameOf(options_.chief),
                         " has ended: it hangs, and is being ended"));
    ended_idle_[task] = now + options_.stop_grace;
    backend_.End(task, EndMode::kGently);
  }
  for (auto& [task, due] : ended_idle_) {
    if (now < due) continue;
    report_(absl::StrCat(NameOf(task), " did not end when asked to, and is being killed now"));
    due = absl::InfiniteFuture();
    backend_.End(task, EndMode::kAtOnce);
  }
}

void TaskSupervisor::SucceedIfDone() {
  if (!succeeded_ && TrainersAreDone()) Succeed();
  if (succeeded_ && OnlyServersRun()) deadline_ = std::min(deadline_, clock_.Now() + options_.server_grace);
}

void TaskSupervisor::Succeed() {
  succeeded_ = true;
  DropRestarts();
  phase_ = Phase::kTrained;
  deadline_ = clock_.Now() + options_.stop_grace;
}

void TaskSupervisor::EndTheRest(const TaskId& because_of, const ExitStatus& status) {
  if (done()) return;
  report_(absl::StrCat(HowItEnded(because_of, status), ": ending the others (", NamesOf(TheRest()), ")"));
  BeginEnding(options_.stop_grace);
}

void TaskSupervisor::ReportFailure(const TaskId& task, const ExitStatus& status) {
  const bool fatal = phase_ == Phase::kTraining && IsServer(task);
  report_(absl::StrCat(
      HowItEnded(task, status),
      fatal ? ": training can't go on without it; the others will notice (Ctrl-C ends them)" : "; the others go on"));
}

void TaskSupervisor::OnInterrupt() {
  ++interrupts_;
  DropRestarts();
  if (running_.empty()) return;
  const std::string why = options_.why_interrupted ? options_.why_interrupted() : "";
  if (interrupts_ > 1) {
    report_(absl::StrCat(why.empty() ? "interrupted" : "asked to end", " again: killing ", NamesOf(running_)));
    KillAll();
    return;
  }
  report_(absl::StrCat(why.empty() ? "interrupted" : why, ": ending ", NamesOf(running_), "; what is left after ",
                       absl::FormatDuration(options_.stop_grace), ", or at another ",
                       why.empty() ? "interrupt" : "muster kill", ", is killed"));
  if (phase_ == Phase::kTraining || phase_ == Phase::kTrained) BeginEnding(options_.stop_grace);
}

void TaskSupervisor::OnTime() {
  std::vector<TaskId> due;
  for (const auto& [task, when] : restarts_due_)
    if (when <= clock_.Now()) due.push_back(task);
  for (const TaskId& task : due)
    if (restarts_due_.count(task) > 0) Restart(task);
  if (phase_ == Phase::kTraining) EndIdleWorkers();
  if (done() || clock_.Now() < deadline_) return;
  if (phase_ == Phase::kTrained) {
    if (succeeded_ && OnlyServersRun()) {
      report_(absl::StrCat("training has finished: ending ", NamesOf(running_)));
    } else {
      report_(absl::StrCat("still running ", absl::FormatDuration(options_.stop_grace), " after ",
                           succeeded_ ? "training had finished" : NameOf(options_.chief) + " had ended",
                           ", and being ended now: ", NamesOf(TheRest())));
    }
    BeginEnding(std::min(options_.stop_grace, options_.last_grace));
  } else if (phase_ == Phase::kEnding) {
    report_(absl::StrCat("did not end when asked to, and being killed now: ", NamesOf(running_)));
    KillAll();
  }
}

void TaskSupervisor::BeginEnding(absl::Duration grace) {
  phase_ = Phase::kEnding;
  DropRestarts();
  deadline_ = done() ? absl::InfiniteFuture() : clock_.Now() + grace;
  for (const TaskId& task : running_) {
    if (!IsServer(task)) backend_.End(task, EndMode::kGently);
  }
  AskServersToEnd();
}

// The ps end automatically once they know that all workers are done. But of a worker that died before it joined they
// know nothing, and would wait for it.
void TaskSupervisor::EndServersOfTheLost() {
  if (!first_failure_.has_value() || running_.empty() || !restarts_due_.empty() || !OnlyServersRun()) return;
  report_(absl::StrCat("no trainer is left: ending ", NamesOf(running_)));
  BeginEnding(options_.stop_grace);
}

bool TaskSupervisor::TrainersAreDone() const {
  return std::none_of(running_.begin(), running_.end(), IsTrainer) &&
         std::none_of(restarts_due_.begin(), restarts_due_.end(), [](const auto& one) { return IsTrainer(one.first); });
}

bool TaskSupervisor::OnlyServersRun() const { return std::all_of(running_.begin(), running_.end(), IsServer); }

void TaskSupervisor::AskServersToEnd() {
  if (servers_asked_ || !OnlyServersRun()) return;
  servers_asked_ = true;
  for (const TaskId& task : running_) backend_.End(task, EndMode::kGently);
}

void TaskSupervisor::KillAll() {
  phase_ = Phase::kKilling;
  deadline_ = absl::InfiniteFuture();
  for (const TaskId& task : running_) backend_.End(task, EndMode::kAtOnce);
}

}  // namespace muster
