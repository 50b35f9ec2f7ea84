#include "muster/launch/backends/local/local_backend.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/status_macros.h"
#include "muster/launch/backends/local/run_processes.h"
#include "muster/launch/cluster_plan.h"
#include "muster/launch/find_program.h"

namespace muster {
namespace {

constexpr size_t kReadBytes = 64 << 10;

// The parent of whoever loses its own, so that Stop can wait for every process of the run to be gone, grandchildren
// too. Also makes sure that descriptors 0 to 2 are taken, for pipes must not get those numbers.
absl::Status PrepareProcess() {
  for (int fd = 0; fd <= 2;) {
    fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd < 0) return absl::ErrnoToStatus(errno, "cannot open /dev/null");
    if (fd > 2) {
      close(fd);
    } else {
      fcntl(fd, F_SETFD, 0);
    }
  }
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return absl::ErrnoToStatus(errno, "cannot become a subreaper");
  return absl::OkStatus();
}

ExitStatus WaitFor(int pid_fd) {
  siginfo_t info = {};
  while (waitid(P_PIDFD, pid_fd, &info, WEXITED) < 0 && errno == EINTR) {
  }
  if (info.si_code == CLD_EXITED) return {.code = info.si_status};
  return {.signal = info.si_status};
}

}  // namespace

LocalBackend::LocalBackend(const LocalBackendOptions& options, FdLoop& loop, BackendEvents& events)
    : options_(options), loop_(loop), events_(events) {}

LocalBackend::~LocalBackend() { MUSTER_CHECK(guard_ == nullptr); }

absl::Status LocalBackend::Start() {
  MUSTER_CHECK(guard_ == nullptr);
  RETURN_IF_ERROR(PrepareProcess());
  ASSIGN_OR_RETURN(guard_, Guard::Fork(options_.run_id));
  return absl::OkStatus();
}

int LocalBackend::Stop() {
  if (guard_ == nullptr) return 0;
  for (auto& [task, child] : children_) {
    kill(-child.pid, SIGKILL);
    for (const int fd : {child.pid_fd, child.stdout_fd, child.stderr_fd}) {
      if (fd < 0) continue;
      loop_.Forget(fd);
      if (fd != child.pid_fd) close(fd);
    }
    guard_->Forget(child.pid);
    WaitFor(child.pid_fd);
    close(child.pid_fd);
  }
  children_.clear();
  for (const auto& [task, fd] : memories_) close(fd);
  memories_.clear();
  const int strays = KillProcessesOfRun(options_.run_id);
  while (waitpid(-1, nullptr, WNOHANG) > 0) {  // orphans that became this process's children
  }
  guard_->Finish();
  guard_.reset();
  return strays;
}

absl::Status LocalBackend::Launch(const ProcessSpec& process) {
  MUSTER_CHECK(guard_ != nullptr && children_.count(process.task) == 0);
  ChildSpec spec;
  spec.arguments = process.arguments;
  spec.environment = EnvironmentOf(process);
  spec.memory_fd = MemoryFd(process.task);
  if (spec.memory_fd >= 0) spec.environment.push_back(absl::StrCat(kArenaFdVariable, "=", spec.memory_fd));
  spec.guard_fd = guard_->fd();
  ASSIGN_OR_RETURN(spec.program, FindProgram(process.arguments.at(0), SearchPath(spec.environment)));
  ASSIGN_OR_RETURN(children_[process.task], StartChild(spec));
  const TaskId task = process.task;
  WatchOutput(task, OutputStream::kStdout);
  WatchOutput(task, OutputStream::kStderr);
  loop_.Watch(children_[task].pid_fd, POLLIN, [this, task](short) { OnEnd(task); });
  return absl::OkStatus();
}

int LocalBackend::MemoryFd(const TaskId& task) {
  if (task.job != kPsJob) return -1;
  const auto [memory, added] = memories_.try_emplace(task, -1);
  // Without one the ps has memory of its own, which a kill takes with it.
  if (added) memory->second = memfd_create("muster-arena", MFD_CLOEXEC);
  return memory->second;
}

std::vector<std::string> LocalBackend::EnvironmentOf(const ProcessSpec& process) const {
  std::map<std::string, std::string> variables;
  for (const std::string& variable : options_.environment) {
    const size_t equals = variable.find('=');
    if (equals != std::string::npos) variables[variable.substr(0, equals)] = variable.substr(equals + 1);
  }
  for (const auto& [name, value] : process.environment) variables[name] = value;
  std::vector<std::string> environment;
  for (const auto& [name, value] : variables) environment.push_back(absl::StrCat(name, "=", value));
  return environment;
}

std::string LocalBackend::SearchPath(const std::vector<std::string>& environment) const {
  for (const std::string& variable : environment) {
    if (absl::StartsWith(variable, "PATH=")) return variable.substr(5);
  }
  return "/usr/local/bin:/usr/bin:/bin";
}

void LocalBackend::End(const TaskId& task, EndMode mode) {
  const auto child = children_.find(task);
  if (child == children_.end()) return;
  if (mode == EndMode::kAtOnce) {
    kill(-child->second.pid, SIGKILL);
    return;
  }
  kill(-child->second.pid, SIGTERM);
  kill(-child->second.pid, SIGCONT);  // who was stopped couldn't hear it
}

void LocalBackend::PauseOutput(bool paused) {
  if (paused == paused_) return;
  paused_ = paused;
  for (const auto& [task, child] : children_) {
    for (const int fd : {child.stdout_fd, child.stderr_fd}) {
      if (fd >= 0) loop_.SetEvents(fd, paused ? 0 : POLLIN);
    }
  }
}

pid_t LocalBackend::Pid(const TaskId& task) const {
  const auto child = children_.find(task);
  return child == children_.end() ? 0 : child->second.pid;
}

int& LocalBackend::OutputFd(const TaskId& task, OutputStream stream) {
  Child& child = children_.at(task);
  return stream == OutputStream::kStdout ? child.stdout_fd : child.stderr_fd;
}

void LocalBackend::WatchOutput(const TaskId& task, OutputStream stream) {
  loop_.Watch(OutputFd(task, stream), paused_ ? 0 : POLLIN, [this, task, stream](short) { ReadOnce(task, stream); });
}

size_t LocalBackend::ReadOnce(const TaskId& task, OutputStream stream) {
  int& fd = OutputFd(task, stream);
  if (fd < 0) return 0;
  char buffer[kReadBytes];
  ssize_t got;
  do {
    got = read(fd, buffer, sizeof buffer);
  } while (got < 0 && errno == EINTR);
  if (got > 0) {
    events_.OnOutput(task, stream, std::string_view(buffer, got));
    return got;
  }
  if (got == 0 || errno != EAGAIN) {
    loop_.Forget(fd);
    close(std::exchange(fd, -1));
  }
  return 0;
}

// What a task has left in the pipe when it ended. No more than a pipe holds: a process that has left the group may go
// on writing for ever.
void LocalBackend::ReadWhatIsThere(const TaskId& task, OutputStream stream) {
  const int fd = OutputFd(task, stream);
  if (fd < 0) return;
  const int capacity = fcntl(fd, F_GETPIPE_SZ);
  for (int64_t left = capacity; left > 0;) {
    const size_t got = ReadOnce(task, stream);
    if (got == 0) break;
    left -= static_cast<int64_t>(got);
  }
  if (OutputFd(task, stream) < 0) return;
  loop_.Forget(fd);
  close(std::exchange(OutputFd(task, stream), -1));
}

// The group is killed while the ended process still holds its number, and forgotten by the guard before it gives it up:
// at no moment can a signal reach a later process of the same number.
void LocalBackend::OnEnd(const TaskId& task) {
  const Child child = children_.at(task);
  kill(-child.pid, SIGKILL);
  ReadWhatIsThere(task, OutputStream::kStdout);
  ReadWhatIsThere(task, OutputStream::kStderr);
  guard_->Forget(child.pid);
  const ExitStatus status = WaitFor(child.pid_fd);
  loop_.Forget(child.pid_fd);
  close(child.pid_fd);
  children_.erase(task);
  events_.OnExit(task, status);
}

}  // namespace muster
