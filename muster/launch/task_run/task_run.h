// The driver of a run's tasks over a Backend, under `muster run` and `muster train` alike: reserves the ports of all,
// starts all, does what the TaskSupervisor decides until all have ended, and stops what is left. A TaskRunClient
// shows and keeps what happens.
//
// A task that fails and whose last lines say that its address is in use is started once more with its reserved ports
// given up: its program doesn't set SO_REUSEADDR, and so can't bind a port beside the reservation (FreePorts). If that
// life ends in the same way, another program has the port: the task gets other ports, once, and all tasks are started
// again, as nobody else knows the new address.
//
// A task whose host is lost goes to another one, if the client says that it may (docs/moves.md).
//
// Everything happens in the calling thread, which must be the process's only one. While this object lives, SIGINT,
// SIGTERM and SIGHUP are blocked and counted as interrupts.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "muster/launch/backends/backend.h"
#include "muster/launch/supervise/companion.h"
#include "muster/launch/supervise/ending_signals.h"
#include "muster/launch/supervise/task_supervisor.h"
#include "muster/launch/system/fd_loop.h"
#include "muster/launch/task_run/task_moves.h"

namespace muster {

// The owner of a run, who shows and keeps what happens. TaskRun calls it only from within its own methods.
class TaskRunClient {
 public:
  virtual ~TaskRunClient() = default;
  virtual void OnOutput(const TaskId& task, OutputStream stream, std::string_view bytes) = 0;
  // As BackendEvents::OnOutputLost.
  virtual void OnOutputLost(const TaskId& /*task*/, OutputStream /*stream*/, uint64_t /*bytes*/) {}
  // Called when a life of the task has ended, after all its output.
  virtual void OnOutputEnd(const TaskId& task) = 0;
  // Returns the last lines of the task's output, oldest first.
  virtual std::deque<std::string> LastLines(const TaskId& task) const = 0;
  // Called before each launch of a task. `life`: which of its launches it is, from 1.
  virtual void OnLaunch(const TaskId& /*task*/, int /*life*/) {}
  // Called for each task that Launch starts, or TakeOver finds. (A restart is told by TaskSupervisorOptions::changed.)
  virtual void OnStarted(const ProcessSpec& spec, const LocalProcess& process) = 0;
  // As BackendEvents::OnUsage.
  virtual void OnUsage(const TaskId& /*task*/, const ProcessUsage& /*usage*/) {}
  // A task that was to run on a host that is left out is on this one from now on. It has no process yet.
  virtual void OnPlaced(const TaskId& /*task*/, const std::string& /*host*/) {}
  // Returns the hosts to which a task may go when its own is lost; none: it stays. Not asked of runs on this machine.
  virtual MoveWish MayMoveTo(const TaskId& /*task*/) { return {}; }
  // Returns whether a task may be replaced while its old process may still run: the job refuses what that one does.
  virtual bool IsReplacedAtOnce(const TaskId& /*task*/) const { return false; }
  // Returns whether the programs learn from the cluster file that a task has moved. Otherwise all are started again.
  virtual bool LearnsOfMoves() const { return true; }
  // A task goes to a host and has other addresses there; "": it stays where it is, and has others all the same. Returns
  // the processes of all tasks of the run anew.
  virtual absl::StatusOr<std::vector<ProcessSpec>> PlanAgain(const TaskId& task, const std::string& /*host*/,
                                                             const std::map<TaskId, std::vector<std::string>>&) {
    return absl::UnimplementedError(absl::StrCat(task.ToString(), " can't move"));
  }
  // Returns what the user calls a task.
  virtual std::string NameOf(const TaskId& task) const { return task.ToString(); }
  // As TaskSupervisorOptions::why_interrupted.
  virtual std::string WhyInterrupted() const { return ""; }
  // Takes a line for the user.
  virtual void Say(const std::string& line) = 0;
  // Must call RunRound once, and may do between the rounds what else it has to do. Called whenever the driver waits.
  virtual void Wait() = 0;
};

struct TaskRunOptions {
  std::string engine = kThisMachine;  // see MakeBackend
  BackendOptions backend;
  // Makes the backend in its place; empty: MakeBackend does. For tests.
  std::function<std::unique_ptr<Backend>(BackendEvents& events)> make_backend = nullptr;
};

struct PortRequest {
  TaskId task;
  std::vector<uint16_t> ports;  // numbers, or 0 for any
  // Where the task goes if its host is optional and left out (HostPlan::optional_hosts); no hosts: nowhere.
  MoveWish elsewhere = {};
};

// "HOST:PORT" of each reserved port of a task, in the order of the request.
using ReservedPorts = std::map<TaskId, std::vector<std::string>>;

// The tasks of a run whose supervisor was killed.
struct LeftTasks {
  std::vector<ProcessSpec> processes;                                 // of all tasks, as they were launched
  std::vector<LeftProcess> running;                                   // those that hadn't ended, as far as is known
  std::set<TaskId> starting;                                          // their restart is counted, if not made
  std::map<TaskId, int> lives;                                        // how often each was launched
  std::map<TaskId, std::vector<std::vector<std::string>>> addresses;  // reserved ones, the newest last: tasks move
};

// Returns the port of "HOST:PORT".
uint16_t PortOf(const std::string& address);

// Why TaskRun::Launch failed.
struct StartFailure {
  TaskId task;
  absl::Status why;
  bool alone = true;  // no other task was started
};

class TaskRun final : public BackendEvents {
 public:
  // Borrows the client, which must outlive it.
  TaskRun(TaskRunOptions options, TaskRunClient& client);
  ~TaskRun() override;
  TaskRun(const TaskRun&) = delete;
  TaskRun& operator=(const TaskRun&) = delete;

  // InvalidArgument names an engine that there isn't. Must be called before what follows; Stop must follow.
  [[nodiscard]] absl::Status Start();
  // Blocks until all are reserved, on hosts that may have to be reached first; Cancelled after an interrupt, as nothing
  // is started yet. InvalidArgument: a port that was asked for by its number is in use.
  absl::StatusOr<ReservedPorts> Reserve(const std::vector<PortRequest>& requests);
  // Leaves out an optional host that can't be used for what `why` says, and blocks until what should run there has its
  // place elsewhere (OnPlaced). Nothing of it may run.
  [[nodiscard]] absl::Status LeaveOut(const std::string& host, const std::string& why);
  // Starts all of them in the place of earlier tasks, which must have ended, and blocks until each has been started or
  // has failed to; then an error is in start_failure().
  // Cancelled after a second interrupt. An end that comes early is kept for Supervise, as is the loss of an optional
  // host.
  [[nodiscard]] absl::Status Launch(std::vector<ProcessSpec> processes);
  const std::optional<StartFailure>& start_failure() const { return start_failure_; }
  // Goes on, in the place of these and Supervise, with what an earlier supervisor has launched and hadn't seen end.
  void TakeOver(LeftTasks left, TaskSupervisorOptions options);
  // Starts a process that runs beside the tasks until Stop; they go on if it fails.
  void LaunchCompanion(ProcessSpec process);
  // Blocks until the launched tasks have ended and none will be restarted. Sets `relaunch` of the options. Interrupts
  // that came before count.
  void Supervise(TaskSupervisorOptions options);
  // Forgets the tasks, so that others can be launched: those of a build make way for those of the run.
  void ForgetTasks();
  // Ends the companion, then whatever is left. Returns the number of strays (Backend::Stop). May be called twice.
  int Stop();

  // The supervisor of the tasks, from Supervise to ForgetTasks; null otherwise.
  const TaskSupervisor* supervisor() const { return supervisor_.has_value() ? &*supervisor_ : nullptr; }
  int interrupts() const { return interrupts_; }
  // What interrupts have asked for has been done: those so far don't end what is launched from now on.
  void SettleInterrupts() { settled_ = interrupts_; }
  // Returns the process of a task that runs.
  LocalProcess ProcessOf(const TaskId& task) const;
  void PauseOutput(bool paused) { backend_->PauseOutput(paused); }
  // As Backend::Input.
  void Input(const TaskId& task, std::string_view bytes) { backend_->Input(task, bytes); }

  FdLoop& loop() { return loop_; }
  // Runs one round of the loop, which waits until `deadline` at most, and does what is due then.
  void RunRound(absl::Time deadline);

  void OnReserved(const TaskId& task, const std::vector<std::string>& addresses) override;
  void OnNotReserved(const TaskId& task, const absl::Status& why) override;
  void OnPlaced(const TaskId& task, const std::string& host, const std::string& why) override;
  void OnStarted(const TaskId& task, const LocalProcess& process) override;
  void OnNotStarted(const TaskId& task, const absl::Status& why) override;
  void OnOutput(const TaskId& task, OutputStream stream, std::string_view bytes) override;
  void OnOutputLost(const TaskId& task, OutputStream stream, uint64_t bytes) override;
  void OnExit(const TaskId& task, const ExitStatus& status) override;
  void OnOutOfReach(const TaskId& task) override;
  void OnUsage(const TaskId& task, const ProcessUsage& usage) override { client_.OnUsage(task, usage); }

 private:
  void OnSignals();
  bool IsCompanion(const TaskId& task) const { return companion_.has_value() && companion_->Is(task); }
  // Waits until `waiting_` is empty. Cancelled after so many interrupts.
  [[nodiscard]] absl::Status AwaitAnswers(int interrupts);
  ProcessSpec& SpecOf(const TaskId& task);
  // Starts a task's process again, on another host if its own is lost.
  void Relaunch(const TaskId& task);
  void LaunchAgain(const TaskId& task);
  void LaunchLife(ProcessSpec process);
  const Clock& clock() const { return *options_.backend.clock; }
  MoveWish WishOf(const TaskId& task);
  bool MayFindPlace(const TaskId& task, const absl::Status& why);
  void OnNotMoved(const TaskId& task, const absl::Status& why);
  void OnNothingLeft(const TaskId& task, const absl::Status& why);
  // Plans and starts a task whose ports on its new host are reserved.
  void OnMoved(const TaskId& task, const std::vector<std::string>& addresses);
  // Begins to end all tasks, which are started again together once all of them have ended and none moves any more.
  void BeginWholeRestart();
  void AskToEnd(bool servers);
  // Must be called in each round.
  void GoOnWithWholeRestart();
  // Returns whether the task was asked to end for that, and so waits for the others now.
  bool ParkIfAsked(const TaskId& task);
  // Returns whether the failed task is started once more, without its reserved ports or with others.
  bool StartsOnceMore(const TaskId& task, const ExitStatus& status);
  bool GetsOtherPorts(const TaskId& task, const ExitStatus& status);

  // Constant after construction.
  const TaskRunOptions options_;
  TaskRunClient& client_;

  EndingSignals signals_;  // first, so that all processes are forked with them blocked
  FdLoop loop_;
  std::unique_ptr<Backend> backend_;  // from Start on
  int interrupts_ = 0, settled_ = 0;  // settled: of the interrupts

  std::set<TaskId> waiting_;  // tasks whose answer of the backend is due, from Reserve and Launch
  std::map<TaskId, std::vector<uint16_t>> requests_;
  TaskMoves moves_;
  std::map<TaskId, std::string> moving_;    // the hosts of tasks whose reservation there is due; "": their own
  std::map<TaskId, std::string> unplaced_;  // the hosts of tasks whose reservation there has failed
  bool restarts_all_ = false;
  std::set<TaskId> asked_to_end_;               // for that; the ps among them only if servers_asked_
  std::set<TaskId> parked_;                     // wait until all of these have ended
  absl::Time end_by_ = absl::InfiniteFuture();  // when what is asked to end is killed
  bool servers_asked_ = false;
  std::optional<absl::Status> not_reserved_;
  std::vector<ProcessSpec> processes_;
  std::map<TaskId, int> lives_;  // how often each was launched
  std::map<TaskId, absl::Status> not_started_;
  std::optional<StartFailure> start_failure_;
  std::map<TaskId, LocalProcess> running_;
  std::set<TaskId> starting_, taken_over_;  // again, or from an earlier supervisor; the answer is due
  std::set<TaskId> restart_owed_;           // to a task that was taken over, if its process has ended
  std::vector<std::pair<TaskId, ExitStatus>> early_exits_;
  std::set<TaskId> started_once_more_, renewed_;  // the answer is due; got other ports in the place of theirs
  std::optional<Companion> companion_;
  std::optional<TaskSupervisor> supervisor_;
};

}  // namespace muster
