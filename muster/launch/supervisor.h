// Decides what follows when a task of a run ends, when Ctrl-C is pressed and when time has passed. A state machine: it
// is told what happened, and ends processes through the Backend; it doesn't wait, so tests move its clock by hand. Not
// thread-safe.
//
//   a task is killed, or says that       it is started again, up to `max_restarts` times; the others wait for it, or go
//   trying again may help (138)          on without it
//   a worker or the evaluator fails      it is reported, the others go on (asynchronous training survives a worker)
//   a ps fails                           it is reported; the others find out for themselves
//   the chief fails                      the others are ended
//   the chief ends well                  the others have `stop_grace` to end by themselves, then they are ended; at
//                                        once if they are ps alone and another task has failed, as no ps is told so
//   Ctrl-C                               all are ended; again: killed
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
#include "muster/launch/backend.h"

namespace muster {

struct SupervisorOptions {
  // Whose end decides.
  TaskId chief;
  // How long the others may go on after the chief has ended well; and, after Ctrl-C or a failed chief, how long they
  // have from being asked to being killed.
  absl::Duration stop_grace = absl::Seconds(30);
  // From being asked to being killed for those that have used up that time already.
  absl::Duration last_grace = absl::Seconds(5);
  // How often each task is started again. At once the first time; then after a pause that doubles from `restart_pause`
  // with every life that was shorter than `steady_life`, which counts as a new beginning.
  int max_restarts = 0;
  absl::Duration restart_pause = absl::Milliseconds(250);
  absl::Duration steady_life = absl::Seconds(30);
  // Starts the task's process again.
  std::function<absl::Status(const TaskId& task)> relaunch;
};

class Supervisor {
 public:
  struct Failure {
    TaskId task;
    ExitStatus status;
  };
  // Takes one line for the user.
  using Report = std::function<void(const std::string& line)>;

  // `running` has been started. Borrows `backend` and `clock`, which must outlive it.
  Supervisor(const std::vector<TaskId>& running, const SupervisorOptions& options, Backend& backend, const Clock& clock,
             Report report);

  void OnExit(const TaskId& task, const ExitStatus& status);
  // SIGINT, SIGTERM, SIGHUP.
  void OnInterrupt();
  // To be called at deadline(), and whenever.
  void OnTime();

  // When OnTime has something to do; InfiniteFuture if never.
  absl::Time deadline() const;
  // Nothing runs any more, nor will.
  bool done() const { return running_.empty() && restarts_due_.empty(); }
  // Of the chief, once done: what a shell would have in $?.
  int exit_code() const { return exit_code_; }
  // The task that failed first by itself, not because it was being ended.
  const std::optional<Failure>& first_failure() const { return first_failure_; }
  int interrupts() const { return interrupts_; }

 private:
  enum class Phase {
    kTraining,
    kChiefEnded,  // the others may end by themselves
    kEnding,      // all that run have been asked to end, or will be once the ps may be
    kKilling,
  };

  struct Life {
    absl::Time began;
    int restarts = 0;
    int short_lives = 0;  // one after the other
  };

  // True if the task will be, or is already, started again.
  bool Heal(const TaskId& task, const ExitStatus& status);
  void Restart(const TaskId& task);
  // "worker:1 exited with 138 after 10 of 10 restarts".
  std::string HowItEnded(const TaskId& task, const ExitStatus& status) const;
  void OnChiefExit(const ExitStatus& status);
  void ReportFailure(const TaskId& task, const ExitStatus& status);
  void BeginEnding(absl::Duration grace);
  void EndServersOfTheLost();
  bool OnlyServersRun() const;
  void AskServersToEnd();
  void KillAll();

  // Constant after construction.
  const SupervisorOptions options_;
  Backend& backend_;
  const Clock& clock_;
  const Report report_;

  Phase phase_ = Phase::kTraining;
  std::set<TaskId> running_;
  std::map<TaskId, Life> lives_;
  std::map<TaskId, absl::Time> restarts_due_;
  absl::Time deadline_ = absl::InfiniteFuture();
  int exit_code_ = 1;  // until the chief has its own
  std::optional<Failure> first_failure_;
  int interrupts_ = 0;
  bool server_lost_ = false;  // for good: who gives up because of it isn't started again
  bool servers_asked_ = false;
};

}  // namespace muster
