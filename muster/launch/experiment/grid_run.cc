#include "muster/launch/experiment/grid_run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/clock.h"
#include "muster/base/files/file_system.h"
#include "muster/base/retry_pause.h"
#include "muster/base/status_macros.h"
#include "muster/launch/experiment/detach.h"
#include "muster/launch/experiment/experiment_plan.h"
#include "muster/launch/experiment/grid_schedule.h"
#include "muster/launch/experiment/run_progress.h"
#include "muster/launch/experiment/supervisor_pulse.h"
#include "muster/launch/experiment/task_logs.h"
#include "muster/launch/registry/registry.h"
#include "muster/launch/spec/experiment_file.h"
#include "muster/launch/supervise/ending_signals.h"
#include "muster/launch/system/fd_loop.h"
#include "muster/launch/system/pid_fd.h"

namespace muster {
namespace {

constexpr int kGridKilledCode = 143;  // 128 + SIGTERM

// When to start a run again for which the machine had no room, no memory or no process.
class StartRetry {
 public:
  static bool Helps(const absl::Status& started) {
    return absl::IsResourceExhausted(started) || absl::IsUnavailable(started);
  }
  // Sets the next try, later after each failure. Returns whether it is the first since the last success.
  bool Postpone() {
    due_ = RealClock().Now() + pause_.Next();
    return std::exchange(first_, false);
  }
  void Succeed() {
    pause_.Reset();
    first_ = true;
  }
  // Returns whether runs may be started now, because none was postponed or its time has come.
  bool TakeTurn() {
    if (due_ != absl::InfiniteFuture() && RealClock().Now() < due_) return false;
    due_ = absl::InfiniteFuture();
    return true;
  }
  absl::Time due() const { return due_; }

 private:
  RetryPause pause_{absl::Seconds(1), absl::Minutes(1)};
  bool first_ = true;
  absl::Time due_ = absl::InfiniteFuture();  // no run is postponed
};

struct GridRuns {
  std::vector<int> open;
  int finished = 0;  // by an earlier attempt
};

GridRuns RunsToDo(const std::vector<RunRecord>& runs) {
  GridRuns to_do;
  for (const RunRecord& run : runs) {
    if (!HasEnded(run.state)) to_do.open.push_back(run.id.run);
    if (run.state == RunState::kFinished) ++to_do.finished;
  }
  return to_do;
}

// Writes the end of a run that never had a supervisor.
absl::Status EndWithoutSupervisor(Registry& registry, const ExperimentId& id, RunState state,
                                  const std::string& reason) {
  ASSIGN_OR_RETURN(RunRecord run, registry.Run(id));
  run.state = state;
  run.reason = reason;
  run.exit_code = state == RunState::kKilled ? kGridKilledCode : 1;
  return registry.SetRun(run);
}

// The runs' supervisors as children of this process.
class GridSupervisors {
 public:
  // Borrows registry and loop, which must outlive it. Calls `ended` once for each run, when its process is gone.
  GridSupervisors(const Home& home, SupervisorStart start, Registry& registry, FdLoop& loop,
                  std::function<void(const ExperimentId& id)> ended)
      : home_(home), start_(std::move(start)), registry_(registry), loop_(loop), ended_(std::move(ended)) {}

  // Cancelled: the run ended before its turn.
  absl::Status Start(const ExperimentId& id) {
    RETURN_IF_ERROR(PosixFileSystem().CreateDirectory(home_.folder(id)));
    ASSIGN_OR_RETURN(RunLock lock, TakeLock(id));
    // `muster kill` may have ended the run before its turn.
    ASSIGN_OR_RETURN(const RunRecord record, registry_.Run(id));
    if (HasEnded(record.state)) return absl::CancelledError("it ended before its turn");
    ASSIGN_OR_RETURN(const pid_t pid, StartSupervisor(home_, id, std::move(lock), start_));
    return Watch(id, pid);
  }

  void Signal(int signal) const {
    for (const auto& [id, pid_fd] : pid_fds_) SignalPidFd(pid_fd, signal);
  }

 private:
  // Retries, because `muster kill` holds the lock for a moment when it ends a run before its turn.
  absl::StatusOr<RunLock> TakeLock(const ExperimentId& id) {
    constexpr int kLockPauseMs = 10;
    for (int tries = 100;; --tries) {
      absl::StatusOr<RunLock> lock = RunLock::Take(home_.lock(id));
      if (tries == 0 || !absl::IsFailedPrecondition(lock.status())) return lock;
      poll(nullptr, 0, kLockPauseMs);
    }
  }

  // Returns an error, and kills the child, if it can't be watched.
  absl::Status Watch(const ExperimentId& id, pid_t pid) {
    const int pid_fd = OpenPidFd(pid);
    if (pid_fd < 0) {
      const absl::Status why = absl::ErrnoToStatus(errno, "cannot watch a process");
      kill(pid, SIGKILL);  // not waited for yet, so the number is still its own
      while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
      }
      return why;
    }
    pid_fds_[id] = pid_fd;
    loop_.Watch(pid_fd, POLLIN, [this, id](short) { OnEnd(id); });
    return absl::OkStatus();
  }

  void OnEnd(const ExperimentId& id) {
    const int pid_fd = pid_fds_.at(id);
    siginfo_t info = {};
    while (waitid(P_PIDFD, pid_fd, &info, WEXITED) < 0 && errno == EINTR) {
    }
    loop_.Forget(pid_fd);
    close(pid_fd);
    pid_fds_.erase(id);
    ended_(id);
  }

  // Constant after construction.
  const Home home_;
  const SupervisorStart start_;
  Registry& registry_;
  FdLoop& loop_;
  const std::function<void(const ExperimentId& id)> ended_;

  std::map<ExperimentId, int> pid_fds_;
};

class GridRun {
 public:
  // Borrows the registry, which must outlive it.
  GridRun(const Home& home, const RunRecord& grid, const GridRuns& runs, int concurrency, Registry& registry,
          const SupervisorSetting& setting)
      : home_(home),
        registry_(registry),
        loop_(RealClock()),
        logs_({.folder = home.logs(grid.id)}, RealClock()),
        progress_(grid, logs_, RealClock(),
                  [this](const RunRecord& run, const std::vector<TaskRecord>&) { return registry_.SetRun(run); }),
        pulse_(home, grid.id, registry, RealClock()),
        schedule_(runs.open, runs.finished, concurrency, [this](int run) { return StartRun(run); }),
        supervisors_(home, {setting.muster_command, setting.users_umask, /*as_child=*/true}, registry, loop_,
                     [this](const ExperimentId& id) { OnEnd(id); }) {}

  int Run() {
    loop_.Watch(signals_.fd(), POLLIN, [this](short) {
      for (int more = signals_.Take(); more > 0; --more) Interrupt();
    });
    progress_.run().supervisor = getpid();
    logs_.AddState(RunState::kCreated);
    logs_.Flush();  // before its runs have any line
    for (const RunState state : {RunState::kPending, RunState::kStarting}) Note(state);
    schedule_.Fill();
    Note(RunState::kRunning);
    while (!schedule_.done()) {
      Wait(retry_.due());
      if (retry_.TakeTurn()) schedule_.Fill();
    }
    End();
    loop_.Forget(signals_.fd());
    return progress_.run().exit_code;
  }

 private:
  void Note(RunState state) {
    progress_.SetRun(state);
    progress_.Commit();
  }
  ExperimentId IdOf(int run) const { return {.number = progress_.id().number, .run = run}; }

  RunState StartRun(int run) {
    const absl::Status started = supervisors_.Start(IdOf(run));
    if (started.ok()) retry_.Succeed();
    if (started.ok()) return RunState::kRunning;
    if (const auto record = registry_.Run(IdOf(run)); record.ok() && HasEnded(record->state)) return record->state;
    if (StartRetry::Helps(started)) {
      if (retry_.Postpone())
        logs_.Say(absl::StrCat("run ", IdOf(run).ToString(), " waits, trying again and again: ", started.message()));
      return RunState::kPending;
    }
    EndRun(run, RunState::kFailed, absl::StrCat("it could not be started: ", std::string(started.message())));
    return RunState::kFailed;
  }

  // Takes the state from the registry; Reconcile writes it there if the supervisor was killed.
  void OnEnd(const ExperimentId& id) {
    auto record = registry_.Run(id);
    if (record.ok() && !HasEnded(record->state)) {
      const auto lost = registry_.Reconcile();
      if (!lost.ok()) logs_.Say(std::string(lost.status().message()));
      record = registry_.Run(id);
    }
    if (record.ok() && HasEnded(record->state)) {
      logs_.Say(absl::StrCat("run ", id.ToString(), ": ", std::string(Name(record->state))));
      return schedule_.OnEnd(id.run, record->state);
    }
    EndRun(id.run, RunState::kFailed,
           absl::StrCat("its supervisor ended before the run started; ", home_.supervisor_log(id), " may say why"));
    schedule_.OnEnd(id.run, RunState::kFailed);
  }

  void EndRun(int run, RunState state, const std::string& reason) {
    const std::string name = absl::StrCat("run ", IdOf(run).ToString());
    logs_.Say(absl::StrCat(name, ": ", std::string(Name(state)), ": ", reason));
    const absl::Status ended = EndWithoutSupervisor(registry_, IdOf(run), state, reason);
    if (!ended.ok()) logs_.Say(absl::StrCat(name, ": the registry can't be written: ", std::string(ended.message())));
  }

  // Sends another signal from the second interrupt on, because a repeated one may be taken for an echo (SignalEcho).
  void Interrupt() {
    supervisors_.Signal(++interrupts_ == 1 ? SIGTERM : SIGINT);
    for (const int run : schedule_.Stop()) EndRun(run, RunState::kKilled, "its grid was killed before its turn");
  }

  void End() {
    RunRecord& run = progress_.run();
    const RunState state = schedule_.state();
    run.reason = schedule_.reason();
    run.exit_code = state == RunState::kFinished ? 0 : state == RunState::kKilled ? kGridKilledCode : 1;
    run.supervisor = 0;
    if (!run.reason.empty()) logs_.Say(run.reason);
    Note(state);
    const absl::Time give_up = RealClock().Now() + RunProgress::kLastPatience;
    for (const int before = interrupts_; !progress_.written() && interrupts_ == before && RealClock().Now() < give_up;)
      Wait(give_up);
    logs_.Flush();
  }

  void Wait(absl::Time deadline) {
    logs_.Flush();
    loop_.RunOnce(std::min({deadline, progress_.deadline(), pulse_.deadline()}));
    progress_.OnTime();
    pulse_.OnTime();
  }

  // Constant after construction.
  const Home home_;
  Registry& registry_;
  EndingSignals signals_;  // first, so that all processes are forked with them blocked
  FdLoop loop_;
  TaskLogs logs_;
  RunProgress progress_;
  SupervisorPulse pulse_;
  GridSchedule schedule_;
  GridSupervisors supervisors_;
  int interrupts_ = 0;
  StartRetry retry_;
};

}  // namespace

absl::StatusOr<int> RunGrid(const Home& home, Registry& registry, int64_t number, RunLock lock,
                            const SupervisorSetting& setting) {
  fcntl(lock.fd(), F_SETFD, FD_CLOEXEC);  // each run's supervisor has a lock of its own
  ASSIGN_OR_RETURN(RunRecord grid, registry.Run({.number = number}));
  GridRuns to_do;
  int concurrency = 1;
  {  // frees what isn't needed while the grid runs: the data of all its runs, maybe 10,000
    ASSIGN_OR_RETURN(const std::vector<RunRecord> runs, registry.Runs(number));
    to_do = RunsToDo(runs);
    ASSIGN_OR_RETURN(const NewExperiment experiment, registry.Specification(number));
    // If the file can't be parsed any more, each of the runs will report that.
    const auto file = ParseExperimentFile(experiment.file_text, experiment.file_name);
    if (file.ok()) concurrency = std::max(1, file->concurrency);
    if (file.ok() && grid.output_dir.empty()) grid.output_dir = OutputFolder(*file, home, grid.id, /*grid=*/true);
  }
  return GridRun(home, grid, to_do, concurrency, registry, setting).Run();
}

}  // namespace muster
