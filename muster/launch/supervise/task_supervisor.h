// Decides what follows when a task of a run ends, when Ctrl-C is pressed and when time has passed. A state machine: it
// is told what happened, and ends processes through the Backend. It never waits, so tests move its clock by hand. Not
// thread-safe.
//
//   a task ends, and its policy says     the task is restarted, up to its limit; the others wait for it, or go on
//   "restart"                            without it
//   a task finds no host to start on     it is tried again for ten minutes (PlaceSearch), which is no restart
//   a dispensable task (the evaluator)   it is restarted, maybe elsewhere, while the others train; otherwise it is
//   is lost with its host                given up, which ends nobody and is no failure of the run
//   Ctrl-C                               all tasks are ended; a second one kills them
//
// With EndRule::kChiefDecides (`muster run`):
//
//   a worker or the evaluator fails      it is reported, the others go on (asynchronous training survives a worker)
//   a ps fails                           it is reported; the others notice for themselves
//   the chief fails                      the others are ended
//   the chief ends well                  the others have `stop_grace` to end by themselves, then they are ended. They
//                                        are ended at once if only ps are left and another task has failed, because
//                                        nobody tells a ps about that
//
// With EndRule::kAllDecide (experiments):
//
//   any task fails                       the others are ended
//   a worker hangs after the chief has   it is ended after `idle_grace`, which is no failure
//   ended well
//   chief and workers have ended well    the run has succeeded, and no task is restarted. The evaluator has
//                                        `stop_grace` to end by itself, the ps `server_grace` once they are alone; then
//                                        they are ended. That counts as a good end for them, because programs that
//                                        never return from server.join() have no other
//
// To end a task is to ask it first (SIGTERM) and to kill it when its time is over. Parameter servers are asked only
// when no task is left that may need them, for a last checkpoint say.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/launch/backends/backend.h"
#include "muster/launch/supervise/idle_tasks.h"
#include "muster/launch/supervise/place_search.h"
#include "muster/launch/task/dispensable.h"
#include "muster/launch/task/restart_policy.h"

namespace muster {

enum class EndRule { kChiefDecides, kAllDecide };

// What becomes of a task, in the terms of the states in docs/experiments.md.
enum class TaskChange {
  kStarting,  // it has ended and will be restarted, at once or after a pause
  kRunning,   // its process runs again
  kFinished,  // ended well by itself, or was ended after the run had succeeded
  kFailed,    // ended by itself, not well, and isn't restarted
  kKilled,    // was ended, or isn't restarted because the run is over
};

struct TaskSupervisorOptions {
  // The task whose exit code is the run's. With kChiefDecides, its end also ends the run.
  TaskId chief;
  EndRule rule = EndRule::kChiefDecides;
  // How long the others may go on after the chief has ended well (the evaluator: after the run has succeeded). After
  // Ctrl-C or a failure that ends the run, it is the time between asking a task to end and killing it.
  absl::Duration stop_grace = absl::Seconds(30);
  // The time between asking and killing for tasks that have used up `stop_grace` already.
  absl::Duration last_grace = absl::Seconds(5);
  // How long ps may take to end by themselves when they are left alone after success; muster's own do so.
  absl::Duration server_grace = absl::Milliseconds(500);
  // With kAllDecide: how long a worker may neither write nor compute once the chief has ended well (IdleTasks). After
  // that it has `stop_grace` from being asked to end to being killed.
  absl::Duration idle_grace = absl::InfiniteDuration();
  IdleTasks::CpuSeconds cpu_seconds;
  // When each task is restarted, and how often. The first restart comes at once, later ones after a pause that starts
  // at the policy's and doubles with every life shorter than `steady_life`. A longer life resets this. Empty: no
  // restarts.
  std::function<RestartPolicy(const TaskId& task)> restart_policy;
  // Decides which ends RestartWhen::kOnFailure restarts.
  std::function<bool(const ExitStatus& status)> retryable = IsRetryable;
  // What the run's earlier supervisor has done: how often it restarted each task, and which have ended well.
  std::map<TaskId, int> restarts;
  std::set<TaskId> ended;
  absl::Duration steady_life = absl::Seconds(30);
  // The least pause before a restart of a task that SIGTERM has ended. Where all processes of a job get it when the job
  // ends, the supervisor may hear of the task first.
  absl::Duration pause_after_sigterm = absl::ZeroDuration();
  // Begins to start the task's process again; OnStarted or OnNotStarted tells what came of it. Until then the task
  // counts as running. Must not call either of them itself.
  std::function<void(const TaskId& task)> relaunch;
  // Called on every change. `status` is how the task ended (for kRunning: its previous life). Empty: no calls.
  std::function<void(const TaskId& task, TaskChange change, const ExitStatus& status)> changed;
  // Returns the name of a task in reports. Empty: "worker:1".
  std::function<std::string(const TaskId& task)> name;
  // Returns what OnInterrupt comes from, as "killed". Empty, or "": somebody has pressed Ctrl-C, or a like signal.
  std::function<std::string()> why_interrupted;
  // Returns whether the run can do without a task that is lost with its host.
  std::function<bool(const TaskId& task)> dispensable = IsDispensable;
};

struct TaskFailure {
  TaskId task;
  ExitStatus status;
  std::string why_not_started;  // again, after an end that would have been healed; empty: it ran
};

class TaskSupervisor {
 public:
  using Failure = TaskFailure;
  // Takes one line for the user.
  using Report = std::function<void(const std::string& line)>;

  // The tasks in `running` have been started. Borrows `backend` and `clock`, which must outlive it.
  TaskSupervisor(const std::vector<TaskId>& running, const TaskSupervisorOptions& options, Backend& backend,
                 const Clock& clock, Report report);

  // These answer `relaunch`. A task that can't be started again ends like a life that failed: it may be restarted once
  // more, and its end is the run's where such an end is. So does one that has found no place for
  // PlaceSearch::kPatience; until then it is tried again, which costs no restart.
  void OnStarted(const TaskId& task);
  void OnNotStarted(const TaskId& task, const absl::Status& why);
  void OnNoPlace(const TaskId& task, const absl::Status& why);
  void OnExit(const TaskId& task, const ExitStatus& status);
  // Returns whether a task that runs would be restarted if it were killed now.
  bool MayReplace(const TaskId& task) const;
  // The process of such a task can't be reached, and counts as ended so: begins another one (`relaunch`), which isn't
  // counted as a restart.
  void Replace(const TaskId& task, const ExitStatus& status);
  // Returns whether the task runs or will be restarted.
  bool IsOpen(const TaskId& task) const { return running_.contains(task) || restarts_due_.contains(task); }
  // Returns whether the task runs only because it hasn't ended yet: training is over, and it is dispensable.
  bool IsUseless(const TaskId& task) const { return phase_ != Phase::kTraining && options_.dispensable(task); }
  // Must be called when a task has written something.
  void OnOutput(const TaskId& task) { idle_.NoteOutput(task, clock_.Now()); }
  // Must be called on SIGINT, SIGTERM or SIGHUP.
  void OnInterrupt();
  // Must be called at deadline(), and may be called at any time.
  void OnTime();

  // Returns when OnTime has something to do; InfiniteFuture if never.
  absl::Time deadline() const;
  // Returns whether the tasks have been asked to end, so that none that ends is missed.
  bool ending() const { return phase_ == Phase::kEnding || phase_ == Phase::kKilling; }
  // Returns whether nothing runs and nothing will be restarted.
  bool done() const { return running_.empty() && restarts_due_.empty(); }
  // Returns, once done, what a shell would have in $?: the chief's code. With kAllDecide: 0 if the run has succeeded,
  // otherwise that of the first failure, otherwise the chief's.
  int exit_code() const;
  // With kAllDecide: whether chief and workers have ended well by themselves, whatever the others did.
  bool succeeded() const { return succeeded_; }
  // Returns the task that failed first on its own, not because it was being ended.
  const std::optional<Failure>& first_failure() const { return first_failure_; }
  int interrupts() const { return interrupts_; }
  // Returns how often the task was restarted.
  int restarts(const TaskId& task) const { return lives_.at(task).restarts; }

 private:
  enum class Phase {
    kTraining,
    kTrained,  // the chief has ended well or the run has succeeded; the others may end by themselves
    kEnding,   // all running tasks have been asked to end; ps will be, once nobody needs them
    kKilling,
  };

  struct Life {
    absl::Time began;
    int restarts = 0;
    int short_lives = 0, out_of_memory = 0;  // in a row; ended by KilledFrom::kOutOfMemory
    ExitStatus last;                         // how its last life ended
  };

  RestartPolicy PolicyOf(const TaskId& task) const;
  // Both return true if the task will be, or already is, restarted.
  bool Heal(const TaskId& task, const ExitStatus& status);
  bool SeekPlaceAgain(const TaskId& task, const absl::Status& why);
  bool MayHeal(const TaskId& task, const ExitStatus& status) const;
  bool IsGivenUp(const TaskId& task, const ExitStatus& status) const;
  void Restart(const TaskId& task);
  void DropRestarts();
  void DropSearches();
  void Tell(const TaskId& task, TaskChange change);
  std::string NameOf(const TaskId& task) const;
  std::string NamesOf(const std::set<TaskId>& tasks) const;
  // Returns the tasks that run or will be restarted.
  std::set<TaskId> TheRest() const;
  // "worker:1 exited with 138 after 10 of 10 restarts".
  std::string HowItEnded(const TaskId& task, const ExitStatus& status) const;
  // FollowTheChief and FollowAll, one for each rule, handle an end that isn't followed by a restart.
  void FollowTheChief(const TaskId& task, const ExitStatus& status, bool by_itself);
  void FollowAll(const TaskId& task, const ExitStatus& status);
  void OnChiefExit(const ExitStatus& status);
  void ReportFailure(const TaskId& task, const ExitStatus& status);
  void EndTheRest(const TaskId& because_of, const ExitStatus& status);
  void WatchIdleWorkers();
  void EndIdleWorkers();
  void SucceedIfDone();
  void Succeed();
  void BeginEnding(absl::Duration grace);
  void EndServersOfTheLost();
  bool TrainersAreDone() const;
  bool OnlyServersRun() const;
  void AskServersToEnd();
  void KillAll();

  // Constant after construction.
  const TaskSupervisorOptions options_;
  Backend& backend_;
  const Clock& clock_;
  const Report report_;

  Phase phase_ = Phase::kTraining;
  std::set<TaskId> running_;
  std::map<TaskId, Life> lives_;
  std::map<TaskId, absl::Time> restarts_due_;
  IdleTasks idle_;
  PlaceSearch places_;
  std::map<TaskId, absl::Time> ended_idle_;  // asked to end because they hang; killed then
  absl::Time deadline_ = absl::InfiniteFuture();
  int chief_code_ = 1;  // until the chief has its own
  std::optional<Failure> first_failure_;
  std::string why_not_started_;  // while OnExit is told of it
  int interrupts_ = 0;
  bool succeeded_ = false;
  bool server_lost_ = false;  // for good: a task that gives up because of it isn't restarted
  bool servers_asked_ = false;
};

}  // namespace muster
