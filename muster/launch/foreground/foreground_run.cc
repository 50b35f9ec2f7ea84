#include "muster/launch/foreground/foreground_run.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/clock.h"
#include "muster/base/status_macros.h"
#include "muster/launch/backends/choice/make_backend.h"
#include "muster/launch/output/output_queue.h"
#include "muster/launch/supervise/companion.h"
#include "muster/launch/supervise/ending_signals.h"
#include "muster/launch/supervise/task_supervisor.h"

namespace muster {
namespace {

// With more output than this waiting for its reader, the tasks have to wait, too.
constexpr size_t kMostWaitingBytes = 1 << 20;

bool SameFile(int a, int b) {
  struct stat of_a, of_b;
  return fstat(a, &of_a) == 0 && fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

// Returns the spec of a task of the plan.
const ProcessSpec& SpecOf(const ClusterPlan& plan, const TaskId& task) {
  return *std::find_if(plan.processes.begin(), plan.processes.end(),
                       [&](const ProcessSpec& process) { return process.task == task; });
}

// Says as which process and where a task was started, and where its status page is if it has one.
std::string StartedLine(const ProcessSpec& process, bool is_chief, pid_t pid) {
  std::string line = absl::StrCat(process.task.ToString(), is_chief ? " (the chief)" : "", " is process ", pid,
                                  process.address.empty() ? "" : " at ", process.address);
  for (const auto& [name, value] : process.environment)
    if (name == kStatusPortVariable) absl::StrAppend(&line, ", status at http://127.0.0.1:", value, "/");
  return line;
}

absl::Status StartedHalfWay(const TaskId& task, const absl::Status& why) {
  return absl::InternalError(
      absl::StrCat(task.ToString(), " could not be started, so the others were ended: ", std::string(why.message())));
}

void FinishTrace(RunTrace* trace, LogMux& log) {
  if (trace != nullptr) trace->Finish([&log](const std::string& line) { log.Say(line); });
}

absl::Status AddToLog(const TaskId& task, LogMux& log) {
  const absl::Status added = log.AddTask(task);
  if (added.ok()) return added;
  return absl::InvalidArgumentError(absl::StrCat("--log-dir: ", std::string(added.message())));
}

void SayFirstFailure(const TaskSupervisor::Failure& failure, LogMux& log) {
  const auto& lines = log.LastLines(failure.task);
  log.Say(absl::StrCat("first failure: ", failure.task.ToString(), " ", failure.status.ToString(),
                       lines.empty() ? "; it wrote nothing" : " — its last lines:"));
  for (const std::string& line : lines) log.Say(absl::StrCat("  ", line));
}

class ForegroundRun final : public BackendEvents {
 public:
  ForegroundRun(const ClusterPlan& plan, FreePorts ports, const ForegroundOptions& options)
      : plan_(plan),
        options_(options),
        ports_(std::move(ports)),
        loop_(RealClock()),
        stdout_(loop_, STDOUT_FILENO),
        stderr_(loop_, STDERR_FILENO),
        log_(options.log, PosixFileSystem(), [this](OutputStream to, std::string_view text) { Put(to, text); }),
        backend_(
            *MakeBackend(kThisMachine, {.run_id = options.run_id, .environment = options.environment}, loop_, *this)) {}

  absl::StatusOr<int> Run() {
    for (const ProcessSpec& process : plan_.processes) RETURN_IF_ERROR(AddToLog(process.task, log_));
    if (options_.companion.has_value()) RETURN_IF_ERROR(AddToLog(options_.companion->task, log_));
    RETURN_IF_ERROR(backend_->Start());
    const absl::Status launched = LaunchAll();
    if (launched.ok()) Supervise();
    companion_.End(loop_);
    const int strays = backend_->Stop();
    if (launched.ok()) ReportEnd(strays);
    Flush();
    loop_.Forget(signals_.fd());
    RETURN_IF_ERROR(launched);
    return supervisor_->exit_code();
  }

  void OnOutput(const TaskId& task, OutputStream stream, std::string_view bytes) override {
    log_.Take(task, stream, bytes);
  }
  void OnExit(const TaskId& task, const ExitStatus& status) override {
    log_.Finish(task);
    if (companion_.Is(task)) return companion_.OnExit(status, /*early=*/!supervisor_->done());
    supervisor_->OnExit(task, status);
  }

 private:
  absl::Status LaunchAll() {
    std::vector<TaskId> running;
    log_.Say(absl::StrCat("run ", options_.run_id));
    for (size_t i = 0; i < plan_.processes.size(); ++i) {
      const ProcessSpec& process = plan_.processes[i];
      if (!process.address.empty()) ports_.Release(i);
      const absl::Status launched = backend_->Launch(process);
      if (!launched.ok()) return running.empty() ? launched : StartedHalfWay(process.task, launched);
      running.push_back(process.task);
      log_.Say(StartedLine(process, process.task == plan_.chief, backend_->ProcessOf(process.task).pid));
    }
    TaskSupervisorOptions options{
        .chief = plan_.chief,
        .stop_grace = options_.stop_grace,
        .restart_policy = [limit = options_.max_restarts](const TaskId&) { return RestartPolicy{.limit = limit}; },
        .retryable = IsRetryableInForeground,
        .relaunch = [this](const TaskId& task) { return LaunchAgain(task); }};
    supervisor_.emplace(running, std::move(options), *backend_, RealClock(),
                        [this](const std::string& line) { log_.Say(line); });
    for (const std::string& note : options_.notes) log_.Say(note);
    companion_.Launch();
    loop_.Watch(signals_.fd(), POLLIN, [this](short) {
      for (int interrupts = signals_.Take(); interrupts > 0; --interrupts) supervisor_->OnInterrupt();
    });
    return absl::OkStatus();
  }

  absl::Status LaunchAgain(const TaskId& task) {
    if (options_.trace != nullptr) options_.trace->NewLife(task);
    RETURN_IF_ERROR(backend_->Launch(SpecOf(plan_, task)));
    log_.Say(absl::StrCat(task.ToString(), " is process ", backend_->ProcessOf(task).pid, " now"));
    return absl::OkStatus();
  }

  void Supervise() {
    while (!supervisor_->done()) {
      loop_.RunOnce(std::min(supervisor_->deadline(), backend_->deadline()));
      backend_->OnTime();
      supervisor_->OnTime();
      backend_->PauseOutput(waiting_bytes() > kMostWaitingBytes);
    }
  }

  void ReportEnd(int strays) {
    FinishTrace(options_.trace, log_);
    if (strays > 0) log_.Say(absl::StrCat("killed ", strays, " processes that the tasks had left behind"));
    if (supervisor_->first_failure().has_value()) SayFirstFailure(*supervisor_->first_failure(), log_);
  }

  // Uses one queue for both streams if they lead to the same place, so that lines don't get mixed.
  void Put(OutputStream stream, std::string_view lines) {
    (stream == OutputStream::kStdout || one_output_ ? stdout_ : stderr_).Put(lines);
  }
  size_t waiting_bytes() const { return stdout_.bytes() + stderr_.bytes(); }

  // Waits until all output is shown; after a second interrupt, shows only what can be written without waiting.
  void Flush() {
    bool patient = !supervisor_.has_value() || supervisor_->interrupts() < 2;
    for (size_t before = 0; waiting_bytes() > 0 && (patient || waiting_bytes() != before);) {
      before = waiting_bytes();
      const int interrupts = supervisor_.has_value() ? supervisor_->interrupts() : 0;
      loop_.RunOnce(patient ? absl::InfiniteFuture() : absl::InfinitePast());
      if (supervisor_.has_value() && supervisor_->interrupts() > interrupts) patient = false;
    }
  }

  // Constant after construction.
  const ClusterPlan& plan_;
  const ForegroundOptions& options_;
  const bool one_output_ = SameFile(STDOUT_FILENO, STDERR_FILENO);

  EndingSignals signals_;  // first, so that the tasks' processes and the guard are forked with them blocked
  FreePorts ports_;
  FdLoop loop_;
  OutputQueue stdout_;
  OutputQueue stderr_;
  LogMux log_;
  const std::unique_ptr<Backend> backend_;
  Companion companion_{options_.companion, *backend_, [this](const std::string& line) { log_.Say(line); }};
  std::optional<TaskSupervisor> supervisor_;  // once all are started
};

}  // namespace

absl::StatusOr<int> RunInForeground(const ClusterPlan& plan, FreePorts ports, const ForegroundOptions& options) {
  return ForegroundRun(plan, std::move(ports), options).Run();
}

}  // namespace muster
