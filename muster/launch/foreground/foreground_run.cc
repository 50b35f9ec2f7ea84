#include "muster/launch/foreground/foreground_run.h"

#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/launch/output/output_queue.h"
#include "muster/launch/supervise/task_supervisor.h"
#include "muster/launch/system/missing_library.h"
#include "muster/launch/system/tensorboard.h"
#include "muster/launch/task/dispensable.h"
#include "muster/launch/task_run/left_out.h"
#include "muster/launch/task_run/task_run.h"

namespace muster {
namespace {

// With more output than this waiting for its reader, the tasks have to wait, too.
constexpr size_t kMostWaitingBytes = 1 << 20;

const TaskId kTensorBoard{"tensorboard", 0};

bool SameFile(int a, int b) {
  struct stat of_a, of_b;
  return fstat(a, &of_a) == 0 && fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

std::string NameOf(const LocalProcess& process) {
  if (process.host.empty()) return absl::StrCat("process ", process.pid);
  return absl::StrCat("process ", process.pid_on_host, " on ", process.host);
}

// Says as which process and where a task was started, and where its status page is if it has one.
std::string StartedLine(const ProcessSpec& process, bool is_chief, const LocalProcess& running) {
  std::string line = absl::StrCat(process.task.ToString(), is_chief ? " (the chief)" : "", " is ", NameOf(running),
                                  process.address.empty() ? "" : " at ", process.address);
  for (const auto& [name, value] : process.environment)
    if (name == kStatusPortVariable) absl::StrAppend(&line, ", status at http://127.0.0.1:", value, "/");
  return line;
}

absl::Status WhyNotStarted(const StartFailure& failure, bool could_copy) {
  const std::string why = absl::StrCat(
      std::string(failure.why.message()),
      could_copy && absl::IsNotFound(failure.why) ? "; --copy DIR brings a folder of this machine to the hosts" : "");
  if (failure.alone) return absl::Status(failure.why.code(), why);
  return absl::InternalError(
      absl::StrCat(failure.task.ToString(), " could not be started, so the others were ended: ", why));
}

// Returns for each task the port of its server, if it has one, and then that of its status page.
std::vector<PortRequest> WantedPorts(const ClusterRequest& request, const ForegroundOptions& options) {
  std::vector<PortRequest> wanted;
  for (const TaskId& task : TasksOf(request)) {
    const uint16_t page = static_cast<uint16_t>(options.first_status_port.value_or(0) + wanted.size());
    PortRequest& ports = wanted.emplace_back(PortRequest{.task = task, .ports = {}});
    if (task.job != kEvaluatorJob) ports.ports.push_back(0);
    if (IsDispensable(task)) ports.elsewhere = ElsewhereIn(options.plan, ChiefOf(request));
    if (options.first_status_port.has_value()) ports.ports.push_back(*options.first_status_port == 0 ? 0 : page);
  }
  if (!options.tensorboard_folder.empty()) wanted.push_back({.task = kTensorBoard, .ports = {0}});
  return wanted;
}

// Explains a status port that is in use.
absl::Status AboutStatusPorts(const absl::Status& why, std::optional<uint16_t> first, size_t tasks) {
  if (!absl::IsInvalidArgument(why)) return why;
  return absl::InvalidArgumentError(absl::StrCat("--status_port '", first.value_or(0), "': ", why.message(), "; the ",
                                                 tasks, " tasks use the ports from there on; 0 chooses free ones"));
}

LogMuxOptions OnTerminals(LogMuxOptions log) {
  log.live_stdout = isatty(STDOUT_FILENO) == 1;
  log.live_stderr = isatty(STDERR_FILENO) == 1;
  return log;
}

void FinishTrace(RunTrace* trace, LogMux& log) {
  if (trace != nullptr) trace->Finish([&log](const std::string& line) { log.Say(line); });
}

absl::Status AddToLog(const TaskId& task, LogMux& log) {
  const absl::Status added = log.AddTask(task);
  if (added.ok()) return added;
  return absl::InvalidArgumentError(absl::StrCat("--log-dir: ", std::string(added.message())));
}

void SayFirstFailure(const std::optional<TaskSupervisor::Failure>& first, const std::map<TaskId, std::string>& hosts,
                     LogMux& log) {
  if (!first.has_value()) return;
  const TaskSupervisor::Failure& failure = *first;
  const std::string host = hosts.contains(failure.task) ? hosts.at(failure.task) : "";
  const auto& lines = log.LastLines(failure.task);
  const std::string what =
      failure.why_not_started.empty()
          ? absl::StrCat(failure.status.ToString(), MissingLibraryText(failure.status, lines, host))
          : absl::StrCat("could not be started again: ", failure.why_not_started);
  log.Say(absl::StrCat("first failure: ", failure.task.ToString(), " ", what,
                       lines.empty() ? "; it wrote nothing" : " — its last lines:"));
  for (const std::string& line : lines) log.Say(absl::StrCat("  ", line));
}

TaskRunOptions OptionsOf(const ForegroundOptions& options, std::function<void(const std::string& line)> note) {
  return {.engine = options.engine,
          .backend = {.run_id = options.run_id,
                      .environment = options.environment,
                      .note = std::move(note),
                      .plan = options.copied == nullptr ? options.plan : WithTransfers(options.plan)}};
}

class ForegroundRun final : public TaskRunClient {
 public:
  ForegroundRun(ClusterRequest request, const ForegroundOptions& options)
      : options_(options),
        request_(std::move(request)),
        run_(OptionsOf(options, [this](const std::string& line) { log_.Say(line); }), *this),
        stdout_(run_.loop(), STDOUT_FILENO),
        stderr_(run_.loop(), STDERR_FILENO),
        log_(OnTerminals(options.log), PosixFileSystem(),
             [this](OutputStream to, std::string_view text) { Put(to, text); }) {}

  absl::StatusOr<int> Run() {
    for (const TaskId& task : TasksOf(request_)) RETURN_IF_ERROR(AddToLog(task, log_));
    if (!options_.tensorboard_folder.empty()) RETURN_IF_ERROR(AddToLog(kTensorBoard, log_));
    RETURN_IF_ERROR(run_.Start());
    const absl::Status launched = LaunchAll();
    if (launched.ok()) Supervise();
    const int strays = run_.Stop();
    if (launched.ok())
      ReportEnd(strays);
    else if (options_.trace != nullptr)
      options_.trace->Drop();
    Flush();
    RETURN_IF_ERROR(launched);
    return run_.supervisor()->exit_code();
  }

  void OnOutput(const TaskId& task, OutputStream stream, std::string_view bytes) override {
    if (CopiesCode(task)) return copy_->OnOutput(task, stream, bytes);
    log_.Take(task, stream, bytes);
  }
  void OnOutputEnd(const TaskId& task) override {
    if (!CopiesCode(task)) log_.Finish(task);
  }
  std::deque<std::string> LastLines(const TaskId& task) const override {
    return CopiesCode(task) ? std::deque<std::string>() : log_.LastLines(task);
  }
  void OnStarted(const ProcessSpec& spec, const LocalProcess& process) override {
    if (CopiesCode(spec.task)) return;
    log_.Say(StartedLine(spec, spec.task == plan_.chief, process));
  }
  void OnPlaced(const TaskId& task, const std::string& host) override { request_.hosts[task] = host; }
  MoveWish MayMoveTo(const TaskId& task) override;
  bool IsReplacedAtOnce(const TaskId& task) const override;
  bool LearnsOfMoves() const override { return !options_.restart_all; }
  absl::StatusOr<std::vector<ProcessSpec>> PlanAgain(const TaskId& task, const std::string& host,
                                                     const ReservedPorts& addresses) override;
  void Say(const std::string& line) override { log_.Say(line); }
  void Wait() override {
    run_.RunRound(absl::InfiniteFuture());
    // An impatient user waits for no reader.
    run_.PauseOutput(run_.interrupts() < 2 && waiting_bytes() > kMostWaitingBytes);
  }

 private:
  bool CopiesCode(const TaskId& task) const { return copy_.has_value() && copy_->Owns(task); }

  // Brings the code to hosts that don't see it, and has their tasks work in the copy.
  absl::Status CopyCode();
  absl::Status LaunchAll();
  absl::StatusOr<ClusterPlan> Plan(const ReservedPorts& reserved) const;

  void LaunchTensorBoard(const std::string& address);

  void Supervise() {
    run_.Supervise(
        {.chief = plan_.chief,
         .stop_grace = options_.stop_grace,
         .restart_policy = [limit = options_.max_restarts](const TaskId&) { return RestartPolicy{.limit = limit}; },
         .retryable = IsRetryableInForeground,
         .changed = [this](const TaskId& task, TaskChange change, const ExitStatus&) { OnChange(task, change); }});
  }

  void OnChange(const TaskId& task, TaskChange change) {
    if (change == TaskChange::kStarting && options_.trace != nullptr) options_.trace->NewLife(task);
    if (change == TaskChange::kRunning)
      log_.Say(absl::StrCat(task.ToString(), " is ", muster::NameOf(run_.ProcessOf(task)), " now"));
  }

  void ReportEnd(int strays) {
    FinishTrace(options_.trace, log_);
    if (strays > 0) log_.Say(absl::StrCat("killed ", strays, " processes that the tasks had left behind"));
    SayFirstFailure(run_.supervisor()->first_failure(), request_.hosts, log_);
  }

  // Uses one queue for both streams if they lead to the same place, so that lines don't get mixed.
  void Put(OutputStream stream, std::string_view lines) {
    (stream == OutputStream::kStdout || one_output_ ? stdout_ : stderr_).Put(lines);
  }
  size_t waiting_bytes() const { return stdout_.bytes() + stderr_.bytes(); }

  // Waits until all output is shown; after a second interrupt, shows only what can be written without waiting.
  void Flush() {
    bool patient = run_.interrupts() < 2;
    for (size_t before = 0; waiting_bytes() > 0 && (patient || waiting_bytes() != before);) {
      before = waiting_bytes();
      const int interrupts = run_.interrupts();
      run_.RunRound(patient ? absl::InfiniteFuture() : absl::InfinitePast());
      if (run_.interrupts() > interrupts) patient = false;
    }
  }

  // Constant after construction.
  const ForegroundOptions& options_;
  const bool one_output_ = SameFile(STDOUT_FILENO, STDERR_FILENO);

  ClusterRequest request_;
  TaskRun run_;
  OutputQueue stdout_;
  OutputQueue stderr_;
  LogMux log_;
  std::optional<CodeCopy> copy_;
  std::map<std::string, PlacedCode> placed_;  // by host, with options_.copied
  ClusterPlan plan_;                          // once the addresses are reserved
};

void ForegroundRun::LaunchTensorBoard(const std::string& address) {
  log_.Say(absl::StrCat("TensorBoard on ", options_.tensorboard_folder, ": http://", address, "/"));
  ProcessSpec board;
  board.task = kTensorBoard;
  board.arguments = TensorBoardCommand(options_.tensorboard_folder, address);
  run_.LaunchCompanion(std::move(board));
}

absl::Status ForegroundRun::CopyCode() {
  CopiedFolder& folder = *options_.copied;
  if (!folder.nonce.has_value())
    log_.Say(absl::StrCat(folder.tree.folder,
                          " can't be written here, so that no host can show that it sees it: all get a copy"));
  if (const std::string ahead = CopyAheadText(folder.tree); !ahead.empty()) log_.Say(ahead);
  HostPlan plan = options_.plan;
  plan.placement = request_.hosts;
  copy_.emplace(folder.OrderFor(plan, options_.run_id), folder.tree, run_);
  const auto copied = copy_->Run();
  folder.nonce.reset();
  RETURN_IF_ERROR(copied.status());
  placed_ = *copied;
  log_.Say(CopiedText(placed_));
  return absl::OkStatus();
}

absl::StatusOr<ClusterPlan> ForegroundRun::Plan(const ReservedPorts& reserved) const {
  std::vector<std::string> addresses;
  for (const TaskId& task : TasksOf(request_))
    if (task.job != kEvaluatorJob) addresses.push_back(reserved.at(task).front());
  ASSIGN_OR_RETURN(ClusterPlan plan, PlanCluster(request_, addresses, options_.job_token, options_.run_id));
  for (ProcessSpec& process : plan.processes) {
    const auto host = request_.hosts.find(process.task);
    if (!placed_.empty() && !process.directory.empty() && host != request_.hosts.end())
      process.directory = options_.copied->WorkFolder(placed_.at(host->second), process.directory);
  }
  return plan;
}

// A layout says itself where each task is. The chief and the evaluator need the folder of the checkpoints, which other
// hosts may not see.
MoveWish ForegroundRun::MayMoveTo(const TaskId& task) {
  const bool needs_folder = task.job == kEvaluatorJob || task == plan_.chief;
  if (request_.hosts.empty() || !request_.layout.empty() || needs_folder) return {};
  MoveWish wish;
  for (const Host& host : options_.plan.hosts)
    if (options_.copied == nullptr || placed_.contains(host.name)) wish.hosts.push_back(host.name);
  return wish;
}

bool ForegroundRun::IsReplacedAtOnce(const TaskId& task) const {
  // Workers that talk to muster's own ps are surely muster's: it refuses what an old process does.
  return LearnsOfMoves() && request_.muster_ps && request_.ps > 0 && task.job == kWorkerJob && task != plan_.chief;
}

absl::StatusOr<std::vector<ProcessSpec>> ForegroundRun::PlanAgain(const TaskId& task, const std::string& host,
                                                                  const ReservedPorts& addresses) {
  request_.hosts[task] = host;
  ASSIGN_OR_RETURN(plan_, Plan(addresses));
  return plan_.processes;
}

absl::Status ForegroundRun::LaunchAll() {
  const std::vector<TaskId> tasks = TasksOf(request_);
  const auto reserved = run_.Reserve(WantedPorts(request_, options_));
  if (!reserved.ok()) return AboutStatusPorts(reserved.status(), options_.first_status_port, tasks.size());
  for (const TaskId& task : tasks)
    if (options_.first_status_port.has_value()) request_.status_ports.push_back(PortOf(reserved->at(task).back()));
  log_.Say(absl::StrCat("run ", options_.run_id));
  if (options_.copied != nullptr) RETURN_IF_ERROR(CopyCode());
  ASSIGN_OR_RETURN(plan_, Plan(*reserved));
  if (const absl::Status launched = run_.Launch(plan_.processes); !launched.ok())
    return !run_.start_failure().has_value()
               ? launched
               : WhyNotStarted(*run_.start_failure(), options_.engine == kSshEngine && options_.copied == nullptr);
  for (const std::string& note : options_.notes) log_.Say(note);
  if (!options_.tensorboard_folder.empty()) LaunchTensorBoard(reserved->at(kTensorBoard).front());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> RunInForeground(const ClusterRequest& request, const ForegroundOptions& options) {
  return ForegroundRun(request, options).Run();
}

}  // namespace muster
