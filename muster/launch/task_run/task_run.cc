#include "muster/launch/task_run/task_run.h"

#include <poll.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/clock.h"
#include "muster/base/status_macros.h"
#include "muster/launch/backends/choice/make_backend.h"

namespace muster {
namespace {

// Returns whether one of the lines says what strerror says of EADDRINUSE, in the writing of any language's library.
bool SayThatTheAddressIsInUse(const std::deque<std::string>& lines) {
  return std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return absl::StrContains(absl::AsciiStrToLower(line), "address already in use");
  });
}

}  // namespace

uint16_t PortOf(const std::string& address) {
  uint32_t port = 0;
  MUSTER_CHECK(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  return static_cast<uint16_t>(port);
}

TaskRun::TaskRun(TaskRunOptions options, TaskRunClient& client)
    : options_(std::move(options)), client_(client), loop_(RealClock()) {
  loop_.Watch(signals_.fd(), POLLIN, [this](short) { OnSignals(); });
}

TaskRun::~TaskRun() { loop_.Forget(signals_.fd()); }

absl::Status TaskRun::Start() {
  ASSIGN_OR_RETURN(backend_, MakeBackend(options_.engine, options_.backend, loop_, *this));
  return backend_->Start();
}

absl::StatusOr<ReservedPorts> TaskRun::Reserve(const std::vector<PortRequest>& requests) {
  for (const PortRequest& request : requests) {
    waiting_.insert(request.task);
    backend_->Reserve(request.task, request.ports);
  }
  RETURN_IF_ERROR(AwaitAnswers(/*interrupts=*/1));
  if (not_reserved_.has_value()) return *not_reserved_;
  return reserved_;
}

absl::Status TaskRun::Launch(std::vector<ProcessSpec> processes) {
  processes_ = std::move(processes);
  for (const ProcessSpec& process : processes_) {
    waiting_.insert(process.task);
    backend_->Launch(process);
  }
  RETURN_IF_ERROR(AwaitAnswers(/*interrupts=*/2));
  for (const ProcessSpec& process : processes_) {
    const auto failed = not_started_.find(process.task);
    if (failed == not_started_.end()) continue;
    start_failure_ = {process.task, failed->second, not_started_.size() == processes_.size()};
    return failed->second;
  }
  return absl::OkStatus();
}

absl::Status TaskRun::AwaitAnswers(int interrupts) {
  while (!waiting_.empty()) {
    if (interrupts_ - settled_ >= interrupts) return absl::CancelledError("interrupted");
    client_.Wait();
  }
  return absl::OkStatus();
}

void TaskRun::LaunchCompanion(ProcessSpec process) {
  companion_.emplace(std::move(process), *backend_, [this](const std::string& line) { client_.Say(line); });
  companion_->Launch();
}

void TaskRun::Supervise(TaskSupervisorOptions options) {
  options.relaunch = [this](const TaskId& task) { backend_->Launch(SpecOf(task)); };
  std::vector<TaskId> tasks;
  for (const ProcessSpec& process : processes_) tasks.push_back(process.task);
  supervisor_.emplace(tasks, options, *backend_, RealClock(), [this](const std::string& line) { client_.Say(line); });
  for (int i = settled_; i < interrupts_; ++i) supervisor_->OnInterrupt();
  for (const auto& [task, status] : std::exchange(early_exits_, {})) supervisor_->OnExit(task, status);
  while (!supervisor_->done()) client_.Wait();
}

void TaskRun::ForgetTasks() {
  supervisor_.reset();
  processes_.clear();
}

int TaskRun::Stop() {
  if (backend_ == nullptr) return 0;
  if (companion_.has_value()) companion_->End(loop_);
  return backend_->Stop();
}

LocalProcess TaskRun::ProcessOf(const TaskId& task) const {
  const auto found = running_.find(task);
  return found == running_.end() ? LocalProcess() : found->second;
}

void TaskRun::RunRound(absl::Time deadline) {
  if (backend_ != nullptr) deadline = std::min(deadline, backend_->deadline());
  if (supervisor_.has_value()) deadline = std::min(deadline, supervisor_->deadline());
  loop_.RunOnce(deadline);
  if (backend_ != nullptr) backend_->OnTime();
  if (supervisor_.has_value()) supervisor_->OnTime();
}

void TaskRun::OnSignals() {
  for (int more = signals_.Take(); more > 0; --more) {
    ++interrupts_;
    if (supervisor_.has_value()) supervisor_->OnInterrupt();
  }
}

void TaskRun::OnReserved(const TaskId& task, const std::vector<std::string>& addresses) {
  waiting_.erase(task);
  reserved_[task] = addresses;
}

void TaskRun::OnNotReserved(const TaskId& task, const absl::Status& why) {
  waiting_.erase(task);
  if (!not_reserved_.has_value()) not_reserved_ = why;
}

void TaskRun::OnStarted(const TaskId& task, const LocalProcess& process) {
  if (IsCompanion(task)) return;
  running_[task] = process;
  if (waiting_.erase(task) > 0 || started_once_more_.erase(task) > 0) {
    client_.OnStarted(SpecOf(task), process);
  } else {
    supervisor_->OnStarted(task);
  }
}

void TaskRun::OnNotStarted(const TaskId& task, const absl::Status& why) {
  if (IsCompanion(task)) return companion_->OnNotStarted(why);
  started_once_more_.erase(task);
  if (waiting_.erase(task) > 0) {
    not_started_[task] = why;
  } else if (supervisor_.has_value()) {
    supervisor_->OnNotStarted(task, why);
  } else {
    client_.Say(absl::StrCat(task.ToString(), " could not be started once more: ", why.message()));
    early_exits_.emplace_back(task, ExitStatus{.code = 1});  // as TaskSupervisor::OnNotStarted
  }
}

void TaskRun::OnOutput(const TaskId& task, OutputStream stream, std::string_view bytes) {
  client_.OnOutput(task, stream, bytes);
  if (supervisor_.has_value()) supervisor_->OnOutput(task);
}

void TaskRun::OnExit(const TaskId& task, const ExitStatus& status) {
  client_.OnOutputEnd(task);
  if (IsCompanion(task)) return companion_->OnExit(status, /*early=*/!supervisor_.has_value() || !supervisor_->done());
  running_.erase(task);
  if (StartsWithoutReservation(task, status)) return;
  if (supervisor_.has_value()) {
    supervisor_->OnExit(task, status);
  } else {
    early_exits_.emplace_back(task, status);
  }
}

ProcessSpec& TaskRun::SpecOf(const TaskId& task) {
  return *std::find_if(processes_.begin(), processes_.end(),
                       [&task](const ProcessSpec& process) { return process.task == task; });
}

bool TaskRun::StartsWithoutReservation(const TaskId& task, const ExitStatus& status) {
  const bool is_ended = supervisor_.has_value() ? supervisor_->ending() : interrupts_ > settled_;
  const auto reserved = reserved_.find(task);
  const bool is_launched = std::any_of(processes_.begin(), processes_.end(),
                                       [&task](const ProcessSpec& process) { return process.task == task; });
  if (status.ok() || is_ended || !is_launched || reserved == reserved_.end() || reserved->second.empty()) return false;
  ProcessSpec& process = SpecOf(task);
  if (process.release_ports || !SayThatTheAddressIsInUse(client_.LastLines(task))) return false;
  client_.Say(absl::StrCat(task.ToString(), " ", status.ToString(),
                           " and says that its address is in use: starting it once more, with its port not held for it "
                           "(a server that sets SO_REUSEADDR needs no second start)"));
  process.release_ports = true;
  started_once_more_.insert(task);
  backend_->Launch(process);
  return true;
}

}  // namespace muster
