// Decides what follows when a task of a run ends, when Ctrl-C is pressed and when time has passed. A state machine: it
// is told what happened, and ends processes through the Backend; it doesn't wait, so tests move its clock by hand. Not
// thread-safe.
//
//   a task ends, and its policy says     it is started again, up to its limit; the others wait for it, or go on without
//   "again"                              it
//   Ctrl-C                               all are ended; again: killed
//
// With EndRule::kChiefDecides (`muster run`):
//
//   a worker or the evaluator fails      it is reported, the others go on (asynchronous training survives a worker)
//   a ps fails                           it is reported; the others find out for themselves
//   the chief fails                      the others are ended
//   the chief ends well                  the others have `stop_grace` to end by themselves, then they are ended; at
//                                        once if they are ps alone and another task has failed, as no ps is told so
//
// With EndRule::kAllDecide (experiments):
//
//   any task fails                       the others are ended
//   chief and workers have ended well    the run has succeeded, and nobody is started again. The evaluator has
//                                        `stop_grace` to end by itself, the ps `server_grace` once they are alone; then
//                                        they are ended, which is a good end for them: programs that never return from
//                                        server.join() know no other
//
// Ended means: asked first (SIGTERM), parameter servers only when nobody is left who may need them, for a last
// checkpoint say; and killed when their time is over.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/launch/backends/backend.h"
#include "muster/launch/task/restart_policy.h"

namespace muster {

enum class EndRule { kChiefDecides, kAllDecide };

// What becomes of a task, as the states of docs/experiments.md have it.
enum class TaskChange {
  kStarting,  // it has ended and is to be started again, at once or after a pause
  kRunning,   // its process is there again
  kFinished,  // ended well by itself; or was ended after the run had succeeded
  kFailed,    // ended by itself, not well, and isn't started again
  kKilled,    // was ended, or isn't started again because the run is over
};

struct TaskSupervisorOptions {
  // Whose exit code is the run's; with kChiefDecides its end decides.
  TaskId chief;
  EndRule rule = EndRule::kChiefDecides;
  // How long the others may go on after the chief has ended well (the evaluator after the run has succeeded); and,
  // after Ctrl-C or a failure that ends the run, how long they have from being asked to being killed.
  absl::Duration stop_grace = absl::Seconds(30);
  // From being asked to being killed for those that have used up that time already.
  absl::Duration last_grace = absl::Seconds(5);
  // How long ps that are left alone after success may take to end by themselves, as our own do.
  absl::Duration server_grace = absl::Milliseconds(500);
  // Which tasks are started again, and how often. At once the first time; then after a pause that doubles from the
  // policy's with every life that was shorter than `steady_life`, which counts as a new beginning. Empty: none.
  std::function<RestartPolicy(const TaskId& task)> restart_policy;
  // What RestartWhen::kOnFailure goes by.
  std::function<bool(const ExitStatus& status)> retryable = IsRetryable;
  absl::Duration steady_life = absl::Seconds(30);
  // Starts the task's process again.
  std::function<absl::Status(const TaskId& task)> relaunch;
  // Told of every change; `status` is how the task ended (of kRunning: its life before). Empty: nobody is told.
  std::function<void(const TaskId& task, TaskChange change, const ExitStatus& status)> changed;
  // What lines call a task. Empty: "worker:1".
  std::function<std::string(const TaskId& task)> name;
};

class TaskSupervisor {
 public:
  struct Failure {
    TaskId task;
    ExitStatus status;
  };
  // Takes one line for the user.
  using Report = std::function<void(const std::string& line)>;

  // `running` has been started. Borrows `backend` and `clock`, which must outlive it.
  TaskSupervisor(const std::vector<TaskId>& running, const TaskSupervisorOptions& options, Backend& backend,
                 const Clock& clock, Report report);

  void OnExit(const TaskId& task, const ExitStatus& status);
  // SIGINT, SIGTERM, SIGHUP.
  void OnInterrupt();
  // To be called at deadline(), and whenever.
  void OnTime();

  // When OnTime has something to do; InfiniteFuture if never.
  absl::Time deadline() const;
  // Nothing runs any more, nor will.
  bool done() const { return running_.empty() && restarts_due_.empty(); }
  // Once done, what a shell would have in $?: of the chief. With kAllDecide: 0 if the run has succeeded, else of the
  // first failure, else of the chief.
  int exit_code() const;
  // With kAllDecide: chief and workers have ended well by themselves, whatever has become of the others.
  bool succeeded() const { return succeeded_; }
  // The task that failed first by itself, not because it was being ended.
  const std::optional<Failure>& first_failure() const { return first_failure_; }
  int interrupts() const { return interrupts_; }
  // How often the task was started again.
  int restarts(const TaskId& task) const { return lives_.at(task).restarts; }

 private:
  enum class Phase {
    kTraining,
    kTrained,  // the others may end by themselves
    kEnding,   // all that run have been asked to end, or will be once the ps may be
    kKilling,
  };

  struct Life {
    absl::Time began;
    int restarts = 0;
    int short_lives = 0;  // one after the other
    ExitStatus last;      // how it ended the last time
  };

  RestartPolicy PolicyOf(const TaskId& task) const;
  // True if the task will be, or is already, started again.
  bool Heal(const TaskId& task, const ExitStatus& status);
  bool MayHeal(const TaskId& task, const ExitStatus& status) const;
  void Restart(const TaskId& task);
  void DropRestarts();
  void Tell(const TaskId& task, TaskChange change);
  std::string NameOf(const TaskId& task) const;
  std::string NamesOf(const std::set<TaskId>& tasks) const;
  // Who runs or is to be started again.
  std::set<TaskId> TheRest() const;
  // "worker:1 exited with 138 after 10 of 10 restarts".
  std::string HowItEnded(const TaskId& task, const ExitStatus& status) const;
  // One for each rule: what follows from an end that isn't healed (for FollowAll: of its own).
  void FollowTheChief(const TaskId& task, const ExitStatus& status, bool by_itself);
  void FollowAll(const TaskId& task, const ExitStatus& status);
  void OnChiefExit(const ExitStatus& status);
  void ReportFailure(const TaskId& task, const ExitStatus& status);
  void EndTheRest(const TaskId& because_of, const ExitStatus& status);
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
  absl::Time deadline_ = absl::InfiniteFuture();
  int chief_code_ = 1;  // until the chief has its own
  std::optional<Failure> first_failure_;
  int interrupts_ = 0;
  bool succeeded_ = false;
  bool server_lost_ = false;  // for good: who gives up because of it isn't started again
  bool servers_asked_ = false;
};

}  // namespace muster
