#include "muster/launch/experiment/experiment_run.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "muster/base/clock.h"
#include "muster/base/files/file_system.h"
#include "muster/base/retry_pause.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/environment_list.h"
#include "muster/cluster/identity/job_token.h"
#include "muster/launch/experiment/refused_attempt.h"
#include "muster/launch/experiment/setup_plan.h"
#include "muster/launch/foreground/cluster_plan.h"
#include "muster/launch/project/project_tree.h"
#include "muster/launch/registry/files/requests.h"
#include "muster/launch/registry/kept_variables.h"
#include "muster/launch/system/find_program.h"
#include "muster/launch/system/random_hex.h"
#include "muster/launch/system/tensorboard.h"
#include "muster/launch/task/dispensable.h"
#include "muster/launch/task/resources.h"
#include "muster/launch/watch/process_table.h"
#include "muster/launch/watch/usage.h"

namespace muster {
namespace {

constexpr int kRunTokenBytes = 32;
constexpr int kRunNameBytes = 8;
// Between checks whether GPUs are free.
constexpr absl::Duration kGpuPause = absl::Seconds(1);
// Between two writings of what tasks on hosts use.
constexpr absl::Duration kUsagePause = absl::Milliseconds(500);
constexpr int kKilledCode = 143;  // 128 + SIGTERM

const TaskId kBoardTask{"tensorboard", 0};

RunState StateAfter(TaskChange change) {
  switch (change) {
    case TaskChange::kStarting:
      return RunState::kStarting;
    case TaskChange::kRunning:
      return RunState::kRunning;
    case TaskChange::kFinished:
      return RunState::kFinished;
    case TaskChange::kFailed:
      return RunState::kFailed;
    case TaskChange::kKilled:
      break;
  }
  return RunState::kKilled;
}

// Returns the tasks of a file as users see them: those that train first, ps last.
std::vector<TaskId> ShownTasks(const ExperimentFile& file) {
  std::vector<TaskId> tasks = TasksOfFile(file);
  std::stable_partition(tasks.begin(), tasks.end(), [](const TaskId& task) { return task.job != kPsJob; });
  return tasks;
}

const Handover* LeftTo(const RunOrder& order) {
  return order.setting.job.has_value() && order.setting.job->left.has_value() ? &*order.setting.job->left : nullptr;
}

bool CanBeTriedAgain(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status);
}

std::string NewRunId(const RunOrder& order) {
  const bool is_given = order.setting.job.has_value() && !order.setting.job->run_id.empty();
  return is_given ? order.setting.job->run_id : RandomHex(kRunNameBytes);
}

}  // namespace

ExperimentRun::ExperimentRun(RunOrder order, Registry& registry)
    : order_(std::move(order)),
      registry_(registry),
      run_id_(LeftTo(order_) == nullptr ? NewRunId(order_) : LeftTo(order_)->run_id),
      random_token_(LeftTo(order_) == nullptr ? RandomHex(kRunTokenBytes) : LeftTo(order_)->job_token),
      tasks_({.engine = EngineOf(order_),
              .backend = {.run_id = run_id_,
                          .environment = OutsideVariables(order_.setting.environment),
                          .resident_bytes = [](const std::vector<pid_t>& pids) { return ResidentBytesOf(pids); },
                          .note = [this](const std::string& line) { logs_.Say(line); },
                          .umask = order_.setting.users_umask,
                          .plan = WithTransfers(order_.hosts)}},
             *this),
      logs_({.folder = order_.home.logs(order_.run.id), .most_bytes = order_.file.log_bytes}, RealClock()),
      progress_(
          order_.run, logs_, RealClock(),
          [this](const RunRecord& run, const std::vector<TaskRecord>& tasks) { return registry_.SetRun(run, tasks); }),
      pulse_(order_.home, order_.run.id, registry_, RealClock()) {}

ExperimentEnd ExperimentRun::Run() {
  progress_.run().supervisor = getpid();
  progress_.run().run_id = run_id_;
  const Handover* const left = LeftTo(order_);
  // A run that has waited for its hosts is PENDING already.
  if (left == nullptr && order_.run.state == RunState::kCreated) {
    logs_.AddState(RunState::kCreated);
    DropRequests(order_.home.requests(order_.run.id));
  }
  if (order_.setting.job.has_value() && !order_.setting.job->begins_again.empty())
    logs_.Say(order_.setting.job->begins_again);
  if (left == nullptr && order_.setting.job.has_value() && !order_.setting.job->says.empty())
    logs_.Say(order_.setting.job->says);
  logs_.Flush();  // before the tasks have any line
  absl::Status went = tasks_.Start();
  if (went.ok()) went = left == nullptr ? Go() : TakeOver(*left);
  logs_.Flush();  // makes the tasks' last output readable while the rest is ended
  NoteEnd(went);
  FetchOutput();
  const int strays = tasks_.Stop();
  if (strays > 0) logs_.Say(absl::StrCat("killed ", strays, " processes that the tasks had left behind"));
  if (order_.give_back) order_.give_back([this](const std::string& line) { logs_.Say(line); });
  End(went);
  end_.exit_code = progress_.run().exit_code;
  return end_;
}

absl::Status ExperimentRun::Go() {
  ASSIGN_OR_RETURN(build_, PlanBuild(order_.file, order_.run.tree, order_.options, order_.home));
  AddTasks();
  RETURN_IF_ERROR(ReservePorts());
  RETURN_IF_ERROR(Build());
  RETURN_IF_ERROR(MakeFolders());
  RETURN_IF_ERROR(CopyCode());
  RETURN_IF_ERROR(SetUp());
  RETURN_IF_ERROR(Plan());
  RETURN_IF_ERROR(TakeGpus());
  WaitUntil(absl::InfinitePast());  // notices an interrupt that came while files were copied, which may take long
  if (tasks_.interrupts() > 0) return absl::CancelledError();
  return LaunchAll();
}

void ExperimentRun::AddTasks() {
  const std::vector<TaskId> tasks = ShownTasks(order_.file);
  if (build_.needed) progress_.Add(kBuildTask);
  for (const TaskId& task : SetupTasks()) progress_.Add(task);
  for (const TaskId& task : tasks) progress_.Add(task);
  progress_.SetRun(RunState::kPending);
  for (const TaskId& task : tasks) progress_.SetTask(task, RunState::kPending);
  progress_.Commit();
}

absl::Status ExperimentRun::Plan() {
  const std::string users_token = VariableIn(order_.setting.environment, kJobTokenVariable);
  RETURN_IF_ERROR(CheckJobToken(users_token));
  ExperimentPlanRequest request;
  request.id = order_.run.id;
  request.parameters = order_.run.parameters;
  request.work_folder = order_.home.work(order_.run.id);
  request.output_dir = order_.run.output_dir;
  request.environment_folder = build_.environment_folder;
  request.search_path = VariableIn(order_.setting.environment, "PATH");
  request.muster_command = IsOnHosts() ? "muster" : order_.setting.muster_command;
  request.placement = order_.hosts.placement;
  // A token that the user has chosen lets the user query the run's ps from a terminal.
  request.job_token = users_token.empty() ? random_token_ : users_token;
  request.run_id = run_id_;
  request.no_gpus = order_.options.no_gpus;
  // The variables of this shell don't go to hosts, where each agent has its own muster first in the PATH.
  request.has_threads = !IsOnHosts() && !VariableIn(order_.setting.environment, kThreadsVariable).empty();
  request.setup_key = setup_key_;
  AddAddresses(request);
  ASSIGN_OR_RETURN(plan_, PlanExperiment(order_.file, request));
  if (hosts_.has_value()) hosts_->Place(plan_);
  return absl::OkStatus();
}

// Status pages are for their own machine.
bool ExperimentRun::HasStatusPages() const { return order_.file.framework == Framework::kMuster && !IsOnHosts(); }

// Reserves for each task the port of its server, if it has one, and for muster's programs then that of a status page.
absl::Status ExperimentRun::ReservePorts() {
  std::vector<PortRequest> wanted;
  for (const TaskId& task : TasksOfFile(order_.file)) {
    PortRequest& ports = wanted.emplace_back(PortRequest{.task = task, .ports = {}});
    if (HasServer(order_.file, task)) ports.ports.push_back(0);
    if (HasStatusPages()) ports.ports.push_back(0);
    if (IsDispensable(task)) ports.elsewhere = ElsewhereIn(order_);
  }
  if (WantsTensorBoard()) wanted.push_back({.task = kBoardTask, .ports = {0}});
  absl::StatusOr<ReservedPorts> ports = tasks_.Reserve(wanted);
  if (ports.ok()) {
    ports_ = *std::move(ports);
    return absl::OkStatus();
  }
  return IsOnHosts() ? WhyHostsFail(ports.status()) : ports.status();
}

absl::Status ExperimentRun::CopyCode() {
  if (!IsOnHosts()) {
    RETURN_IF_ERROR(CheckOutputIsHere(order_.home.output_elsewhere(order_.run.id)));
    unlink(order_.home.output_mark(order_.run.id).c_str());  // from now on the newest output is here
    return absl::OkStatus();
  }
  MakeHosts();
  std::vector<std::string> lines;
  const absl::Status copied = TryUntilThereIsRoom([&]() -> absl::Status {
    ASSIGN_OR_RETURN(lines, hosts_->CopyCode());
    return absl::OkStatus();
  });
  if (!copied.ok()) return WhyHostsFail(copied);
  for (const std::string& line : lines) logs_.Say(line);
  return absl::OkStatus();
}

// However the run has ended, once all its tasks have; an interrupt from now on ends this, too.
void ExperimentRun::FetchOutput() {
  if (!hosts_.has_value() || tasks_.supervisor() == nullptr) return;
  // A second interrupt says not to wait.
  if (!tasks_.supervisor()->done() || tasks_.interrupts() > 1) {
    for (const std::string& line : hosts_->WhereOutputStays()) logs_.Say(line);
    return;
  }
  tasks_.SettleInterrupts();
  for (const std::string& line : hosts_->FetchOutput()) logs_.Say(line);
}

void ExperimentRun::AddAddresses(ExperimentPlanRequest& request) const {
  for (const TaskId& task : TasksOfFile(order_.file)) {
    const std::vector<std::string>& addresses = ports_.at(task);
    if (HasServer(order_.file, task)) request.addresses.push_back(addresses.front());
    if (HasStatusPages()) request.status_ports.push_back(PortOf(addresses.back()));
  }
}

absl::Status ExperimentRun::TakeGpus() {
  if (IsOnHosts()) {
    GiveGpusOnHosts(plan_, hosts_->placement(), order_.options.no_gpus);
    return absl::OkStatus();
  }
  const int count = GpusNeeded(plan_);
  std::vector<int> gpus;
  if (count > 0) {
    const std::vector<int> all = GpusOfMachine(VariableIn(order_.setting.environment, kDevicesVariable));
    if (static_cast<size_t>(count) > all.size())
      return absl::FailedPreconditionError(absl::StrCat("its tasks ask for ", count,
                                                        " gpus together, this machine has ", all.size(),
                                                        " for them; --no-gpus runs without"));
    for (bool said = false; gpus.empty(); said = true) {
      auto taken = registry_.TakeGpus(order_.run.id, count, all);
      if (!taken.ok() && !CanBeTriedAgain(taken.status())) return taken.status();
      if (taken.ok()) gpus = *std::move(taken);
      if (!gpus.empty()) break;
      if (!said) logs_.Say(absl::StrCat("waiting for ", count, " of the machine's ", all.size(), " gpus"));
      RETURN_IF_ERROR(Pause(kGpuPause));
    }
  }
  GiveGpus(plan_, gpus, order_.options.no_gpus);
  return absl::OkStatus();
}

absl::Status ExperimentRun::LaunchAll() {
  if (hosts_.has_value()) RETURN_IF_ERROR(hosts_->NoteOutput());
  progress_.SetRun(RunState::kStarting);
  for (const PlannedTask& planned : plan_.tasks) progress_.SetTask(planned.process.task, RunState::kStarting);
  progress_.Commit();
  if (const absl::Status launched = tasks_.Launch(Processes()); !launched.ok())
    return tasks_.start_failure().has_value() ? WhyNotStarted(*tasks_.start_failure()) : launched;
  progress_.SetRun(RunState::kRunning);
  progress_.Commit();
  logs_.Flush();
  leaves_handover_ = order_.setting.job.has_value();
  LaunchTensorBoard();
  return Supervise(plan_.chief, kIdleGrace);
}

MoveWish ExperimentRun::MayMoveTo(const TaskId& task) {
  const auto planned = PlannedOf(task);
  const bool is_fixed = order_.options.hosts.placement.contains(task.job) || order_.file.torchrun.has_value();
  if (!hosts_.has_value() || planned == plan_.tasks.end() || is_fixed) return {};
  MoveWish wish{.hosts = hosts_->MayMoveTo(task)};
  for (const PlannedTask& one : plan_.tasks)
    if (const int gpus = one.resources.gpus.value_or(0); gpus > 0 && !order_.options.no_gpus)
      wish.gpus[one.process.task] = gpus;
  return wish;
}

bool ExperimentRun::IsReplacedAtOnce(const TaskId& task) const {
  const auto is_server = [](const PlannedTask& planned) { return planned.process.task.job == kPsJob; };
  return LearnsOfMoves() && task.job == kWorkerJob && task != plan_.chief &&
         std::any_of(plan_.tasks.begin(), plan_.tasks.end(), is_server);
}

absl::StatusOr<std::vector<ProcessSpec>> ExperimentRun::PlanAgain(const TaskId& task, const std::string& host,
                                                                  const ReservedPorts& addresses) {
  if (!host.empty()) hosts_->Move(task, host);
  ports_ = addresses;
  const ExperimentPlan before = plan_;
  RETURN_IF_ERROR(Plan());
  GiveGpusAgain(plan_, before, host.empty() ? TaskId() : task, order_.options.no_gpus);
  if (handover_.has_value()) WriteHandoverNow();
  return Processes();
}

std::vector<ProcessSpec> ExperimentRun::Processes() const {
  std::vector<ProcessSpec> processes;
  for (const PlannedTask& planned : plan_.tasks) processes.push_back(planned.process);
  return processes;
}

absl::Status ExperimentRun::WhyNotStarted(const StartFailure& failure) {
  TaskRecord& record = progress_.task(failure.task);
  record.reason = std::string(failure.why.message());
  progress_.SetTask(failure.task, RunState::kFailed);
  return absl::InternalError(absl::StrCat(LabelOf(failure.task), " could not be started: ", record.reason));
}

void ExperimentRun::OnOutput(const TaskId& task, OutputStream stream, std::string_view bytes) {
  if (IsTransfer(task)) return hosts_->OnOutput(task, stream, bytes);
  logs_.Take(task, stream, bytes);
  if (!logged_.has_value()) return;
  // Before the agent hears that it has come.
  logs_.Flush();
  if (const auto logged = logs_.Logged(task); logged.has_value()) logged_->Note(task, lives_[task], *logged);
}

void ExperimentRun::OnOutputEnd(const TaskId& task) {
  if (IsTransfer(task)) return;
  logs_.Finish(task);
  if (logged_.has_value()) logs_.Flush();  // before its end is in the registry
}

std::deque<std::string> ExperimentRun::LastLines(const TaskId& task) const {
  return IsTransfer(task) ? std::deque<std::string>() : logs_.LastLines(task);
}

void ExperimentRun::OnStarted(const ProcessSpec& spec, const LocalProcess&) {
  if (IsTransfer(spec.task)) return;
  NoteProcess(spec.task);
  const auto planned = PlannedOf(spec.task);
  if (planned == plan_.tasks.end()) return;  // the build, or a setup
  TaskRecord& record = progress_.task(spec.task);
  record.gpus = VisibleGpus(*planned);
  record.mem_limit = planned->resources.mem_bytes.value_or(0);
  if (HasStatusPages()) record.status_address = ports_.at(spec.task).back();
  progress_.SetTask(spec.task, RunState::kRunning);
}

void ExperimentRun::OnUsage(const TaskId& task, const ProcessUsage& usage) {
  if (PlannedOf(task) == plan_.tasks.end()) return;
  const absl::Time now = RealClock().Now();
  usages_[task] = {.cpu_seconds = usage.cpu_seconds,
                   .mem_bytes = usage.resident_bytes,
                   .gpus = usage.gpus,
                   .restarts = progress_.task(task).restarts,
                   .when = now};
  if (now - usages_written_ < kUsagePause || !pulse_.IsWatched()) return;
  usages_written_ = now;
  WriteHostUsage(order_.home.host_usage(order_.run.id), usages_).IgnoreError();  // the next one tries again
}

std::map<TaskId, double> ExperimentRun::CpuSecondsOf(const std::vector<TaskId>& tasks) const {
  std::map<TaskId, double> used;
  if (IsOnHosts()) {
    for (const TaskId& task : tasks)
      if (const auto heard = usages_.find(task); heard != usages_.end()) used[task] = heard->second.cpu_seconds;
    return used;
  }
  std::vector<pid_t> leaders;
  for (const TaskId& task : tasks) leaders.push_back(tasks_.ProcessOf(task).pid);
  std::map<pid_t, ProcessSums> sums = SumsByLeader(ReadProcesses("/proc"), leaders);
  for (const TaskId& task : tasks) used[task] = sums[tasks_.ProcessOf(task).pid].cpu_seconds;
  return used;
}

std::vector<PlannedTask>::const_iterator ExperimentRun::PlannedOf(const TaskId& task) const {
  return std::find_if(plan_.tasks.begin(), plan_.tasks.end(),
                      [&](const PlannedTask& one) { return one.process.task == task; });
}

void ExperimentRun::NoteProcess(const TaskId& task) {
  TaskRecord& record = progress_.task(task);
  const LocalProcess process = tasks_.ProcessOf(task);
  record.pid = process.pid;
  record.host = process.host;
  record.cgroup = process.cgroup;
}

bool ExperimentRun::WantsTensorBoard() const { return order_.file.tensorboard && order_.run.id.run == 0; }

// Starts TensorBoard beside the tasks, with their virtual environment but without their GPUs. A grid has none, because
// it would need one per run.
void ExperimentRun::LaunchTensorBoard() {
  if (!WantsTensorBoard()) return;
  ProcessSpec board;
  board.task = kBoardTask;
  std::string search_path = VariableIn(order_.setting.environment, "PATH");
  for (const auto& [name, value] : plan_.tasks.front().process.environment) {
    if (name == "PATH") search_path = value;
    if (name == "PATH" || name == "VIRTUAL_ENV" || name == kRunIdVariable) board.environment.emplace_back(name, value);
  }
  board.environment.emplace_back(kDevicesVariable, "");
  if (!FindProgram("tensorboard", search_path).ok())
    return logs_.Say(
        absl::StrCat("TensorBoard isn't installed (", kInstallTensorBoard, "): the experiment goes on without it"));
  const std::string& folder = order_.run.output_dir;
  const std::string& address = ports_.at(kBoardTask).front();
  board.arguments = TensorBoardCommand(folder, address);
  tasks_.LaunchCompanion(std::move(board));
  logs_.Say(absl::StrCat("TensorBoard on ", folder, ": http://", address, "/"));
}

absl::Status ExperimentRun::Supervise(const TaskId& chief, absl::Duration idle_grace, std::optional<LeftTasks> left) {
  TaskSupervisorOptions options;
  options.chief = chief;
  options.rule = EndRule::kAllDecide;
  options.stop_grace = absl::Seconds(order_.options.stop_grace_seconds);
  options.restart_policy = [this](const TaskId& task) {
    const auto planned = PlannedOf(task);
    return planned == plan_.tasks.end() ? RestartPolicy{.when = RestartWhen::kNever} : planned->restart;
  };
  options.changed = [this](const TaskId& task, TaskChange change, const ExitStatus& status) {
    OnChange(task, change, status);
  };
  options.idle_grace = idle_grace;
  options.cpu_seconds = [this](const std::vector<TaskId>& tasks) { return CpuSecondsOf(tasks); };
  for (const PlannedTask& planned : plan_.tasks) {
    const TaskRecord& record = progress_.task(planned.process.task);
    options.restarts[record.task] = record.restarts;
    if (left.has_value() && HasEnded(record.state)) options.ended.insert(record.task);
  }
  if (left.has_value()) {
    tasks_.TakeOver(*std::move(left), std::move(options));
  } else {
    tasks_.Supervise(std::move(options));
  }
  return tasks_.supervisor()->succeeded() ? absl::OkStatus() : WhyItFailed();
}

absl::Status ExperimentRun::WhyItFailed() {
  if (!tasks_.supervisor()->first_failure().has_value())
    return tasks_.interrupts() > 0 ? absl::CancelledError()
                                   : absl::InternalError("its tasks ended without having finished");
  const auto& [task, status, not_started] = *tasks_.supervisor()->first_failure();
  const int restarts = tasks_.supervisor()->restarts(task);
  const std::deque<std::string> lines = logs_.LastLines(task);
  const std::string meant = WhatTheShellMeant(status, lines, task == kBuildTask ? "" : progress_.task(task).host);
  const std::string what =
      absl::StrCat(LabelOf(task), " ",
                   not_started.empty() ? absl::StrCat(status.ToString(), meant)
                                       : absl::StrCat("could not be started again: ", not_started),
                   restarts > 0 ? absl::StrCat(" after ", restarts, restarts == 1 ? " restart" : " restarts") : "");
  progress_.run().exit_code = status.ShellCode();
  if (task == kBuildTask) return absl::InternalError(what);
  logs_.Say(absl::StrCat("first failure: ", what, lines.empty() ? "; it wrote nothing" : "; its last lines:"));
  for (const std::string& line : lines) logs_.Say(absl::StrCat("  ", line));
  return absl::InternalError(what);
}

std::string ExperimentRun::WhyItWasEnded(TaskChange change, const ExitStatus& status) const {
  if (change == TaskChange::kFinished && !status.ok()) return "ended by muster, as training had finished";
  if (change != TaskChange::kKilled) return "";
  if (tasks_.interrupts() > 0)
    return order_.setting.job.has_value() && !pulse_.was_asked_to_end() ? "ended by muster, as its job ends"
                                                                        : "ended by muster kill";
  if (!tasks_.supervisor()->first_failure().has_value()) return "ended by muster";
  const auto& [task, how, not_started] = *tasks_.supervisor()->first_failure();
  return absl::StrCat("ended by muster, because ", LabelOf(task), " ", how.ToString());
}

void ExperimentRun::OnChange(const TaskId& task, TaskChange change, const ExitStatus& status) {
  TaskRecord& record = progress_.task(task);
  record.exit = status;
  record.pid = 0;
  record.cgroup.clear();
  if (change == TaskChange::kRunning) NoteProcess(task);
  if (const auto planned = PlannedOf(task); planned != plan_.tasks.end()) record.gpus = VisibleGpus(*planned);
  record.restarts = tasks_.supervisor()->restarts(task);
  usages_.erase(task);  // of the life that has ended
  record.reason = WhyItWasEnded(change, status);
  if (record.reason.empty() || status.over_memory > 0)
    record.reason = status.Cause(change == TaskChange::kRunning ? record.host : "");
  progress_.SetTask(task, StateAfter(change));
  changed_ = true;
  if (handover_.has_value()) progress_.Commit();  // before the agent hears that it has come
}

void ExperimentRun::NoteEnd(const absl::Status& went) {
  RunRecord& run = progress_.run();
  if (asked_at_ != absl::InfiniteFuture()) end_.ending = RealClock().Now() - asked_at_;
  if (absl::IsCancelled(went)) {
    NoteInterruption();
    // Tasks that end well when they are asked to are no success of the run.
    const int of_tasks = tasks_.supervisor() != nullptr ? tasks_.supervisor()->exit_code() : 0;
    run.exit_code = of_tasks != 0 ? of_tasks : kKilledCode;
  } else if (!went.ok()) {
    run.reason = std::string(went.message());
    run.exit_code = std::max(1, run.exit_code);
    if (tasks_.supervisor() == nullptr && !said_why_) logs_.Say(run.reason);
  }
}

void ExperimentRun::End(const absl::Status& went) {
  if (TakeBackRefused(order_.home, registry_, order_.run.id, went)) return logs_.Flush();
  RunRecord& run = progress_.run();
  const RunState state = went.ok()                                                   ? RunState::kFinished
                         : absl::IsCancelled(went) && !time_is_over_ && !job_failed_ ? RunState::kKilled
                                                                                     : RunState::kFailed;
  for (const TaskId& task : progress_.OpenTasks()) {
    TaskRecord& record = progress_.task(task);
    const bool had_started = record.pid != 0 || !record.host.empty();
    record.pid = 0;
    record.cgroup.clear();
    record.reason = run.reason;
    progress_.SetTask(task, had_started ? RunState::kKilled : state);
  }
  unlink(order_.home.host_usage(run.id).c_str());
  leaves_handover_ = false;
  if (order_.setting.job.has_value()) RemoveHandover(order_.home, run.id);
  run.supervisor = 0;
  if (!end_.goes_on) progress_.SetRun(state);
  progress_.Commit();
  WriteToTheEnd();
}

// Another kill means that the user doesn't want to wait; the next command will notice that the supervisor is gone.
void ExperimentRun::WriteToTheEnd() {
  const int interrupts = tasks_.interrupts();
  const absl::Time give_up = RealClock().Now() + RunProgress::kLastPatience;
  logs_.Flush();
  while (!progress_.written() && tasks_.interrupts() == interrupts && RealClock().Now() < give_up) WaitUntil(give_up);
}

absl::Status ExperimentRun::Pause(absl::Duration time) {
  const absl::Time until = RealClock().Now() + time;
  while (tasks_.interrupts() == 0 && RealClock().Now() < until) WaitUntil(until);
  return tasks_.interrupts() == 0 ? absl::OkStatus() : absl::CancelledError();
}

void ExperimentRun::HearHosts() {
  if (IsOnHosts()) WaitUntil(absl::InfinitePast());
}

void ExperimentRun::WaitUntil(absl::Time deadline) {
  if (hosts_.has_value() && hosts_->Work()) deadline = absl::InfinitePast();
  if (changed_) progress_.Commit();
  changed_ = false;
  logs_.Flush();
  if (leaves_handover_ && !handover_.has_value() && tasks_.supervisor() != nullptr) LeaveHandover();
  MindTheJob();
  const bool minds_job = order_.setting.job.has_value() && !time_is_over_ && tasks_.interrupts() == 0;
  const absl::Time job_ends_at = minds_job ? std::min(job_ends_at_, ask_job_at_) : absl::InfiniteFuture();
  tasks_.RunRound(std::min({deadline, progress_.deadline(), pulse_.deadline(), job_ends_at}));
  progress_.OnTime();
  pulse_.OnTime();
}

}  // namespace muster
