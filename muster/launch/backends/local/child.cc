#include "muster/launch/backends/local/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/os/available_memory.h"
#include "muster/base/status_macros.h"
#include "muster/launch/backends/local/guard.h"
#include "muster/launch/backends/local/mounts.h"
#include "muster/launch/system/pid_fd.h"
#include "muster/launch/system/process_mark.h"
#include "muster/launch/task/task_environment.h"

namespace muster {
namespace {

// A pipe that closes the ends that weren't taken.
class Pipe {
 public:
  ~Pipe() {
    Close(0);
    Close(1);
  }
  absl::Status Open() {
    if (pipe2(ends_, O_CLOEXEC) == 0) return absl::OkStatus();
    return absl::ErrnoToStatus(errno, "cannot make a pipe");
  }
  int reading() const { return ends_[0]; }
  int writing() const { return ends_[1]; }
  int TakeReading() { return std::exchange(ends_[0], -1); }
  int TakeWriting() { return std::exchange(ends_[1], -1); }
  // Nothing will ever come out of it.
  absl::Status OpenEmpty() {
    ends_[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (ends_[0] >= 0) return absl::OkStatus();
    return absl::ErrnoToStatus(errno, "cannot open /dev/null");
  }
  void CloseWriting() { Close(1); }

 private:
  void Close(int end) {
    const int fd = std::exchange(ends_[end], -1);
    if (fd >= 0) close(fd);
  }
  int ends_[2] = {-1, -1};
};

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// The step at which the child failed. Written at once, which a pipe doesn't split.
struct ChildError {
  enum Step : int32_t { kNone, kGroup, kMount, kDirectory, kProgram };
  int32_t step;
  int32_t error;  // errno
  int32_t mount;  // index of the mount; -1: the namespace for them
};

// All that happens between fork and exec. Only async-signal-safe calls are allowed there (signal-safety(7)), so
// everything is prepared before.
struct Execution {
  const ChildSpec& spec;
  char** arguments;
  char** environment;
  int stdin_fd, stdout_fd, stderr_fd, error_fd;
  pid_t parent;

  [[noreturn]] void Run() const {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);  // the parent died before the line above
    dup2(stdin_fd, 0);
    dup2(stdout_fd, 1);
    dup2(stderr_fd, 2);
    if (spec.memory_fd >= 0) fcntl(spec.memory_fd, F_SETFD, 0);
    const Guard::Record record = {getpid(), 1};
    [[maybe_unused]] const ssize_t written = write(spec.guard_fd, &record, sizeof record);
    if (spec.mark != 0) SetMark(spec.mark);
    if (spec.memory_limit != 0) SetResidentLimit(spec.memory_limit);
    EnterSurroundings();
    if (spec.umask.has_value()) umask(*spec.umask);
    // Resets signals to what a shell would leave to the program. SIGHUP stays as it is, for nohup.
    for (const int signal_number : {SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGCHLD}) signal(signal_number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    execve(spec.program.c_str(), arguments, environment);
    Fail(ChildError::kProgram, errno);
  }

  void EnterSurroundings() const {
    if (spec.cgroup_fd >= 0 && write(spec.cgroup_fd, "0", 1) != 1) Fail(ChildError::kGroup, errno);
    if (!spec.mounts.empty()) {
      int failed = -1;
      if (const int error = EnterMounts(spec.mounts, &failed); error != 0) Fail(ChildError::kMount, error, failed);
    }
    if (!spec.directory.empty() && chdir(spec.directory.c_str()) != 0) Fail(ChildError::kDirectory, errno);
  }

  [[noreturn]] void Fail(ChildError::Step step, int error, int mount = -1) const {
    const ChildError failure = {step, error, mount};
    [[maybe_unused]] const ssize_t written = write(error_fd, &failure, sizeof failure);
    _exit(127);
  }
};

// Returns what went wrong in the child; OK once the program runs, which closes the pipe.
absl::Status ErrorOfChild(int error_fd, const ChildSpec& spec) {
  ChildError failure = {};
  ssize_t got;
  do {
    got = read(error_fd, &failure, sizeof failure);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof failure) return absl::OkStatus();
  switch (failure.step) {
    case ChildError::kGroup:
      return absl::ErrnoToStatus(failure.error, "cannot enter a control group");
    case ChildError::kMount:
      if (failure.mount < 0) return absl::ErrnoToStatus(failure.error, "cannot make a mount namespace");
      return absl::ErrnoToStatus(failure.error, absl::StrCat("cannot mount '", spec.mounts[failure.mount].host,
                                                             "' at '", spec.mounts[failure.mount].path, "'"));
    case ChildError::kDirectory:
      return absl::ErrnoToStatus(failure.error, absl::StrCat("cannot run in the directory '", spec.directory, "'"));
    default:
      return absl::ErrnoToStatus(failure.error, absl::StrCat("cannot execute '", spec.program, "'"));
  }
}

void Reap(pid_t pid) {
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

absl::StatusOr<Child> StartChild(const ChildSpec& spec) {
  Pipe in, out, err, error;
  RETURN_IF_ERROR(spec.takes_input ? in.Open() : in.OpenEmpty());
  RETURN_IF_ERROR(out.Open());
  RETURN_IF_ERROR(err.Open());
  RETURN_IF_ERROR(error.Open());
  std::vector<char*> arguments = Pointers(spec.arguments);
  std::vector<std::string> variables = spec.environment;
  if (spec.memory_fd >= 0) variables.push_back(absl::StrCat(kArenaFdVariable, "=", spec.memory_fd));
  std::vector<char*> environment = Pointers(variables);
  const Execution execution = {spec,          arguments.data(), environment.data(), in.reading(),
                               out.writing(), err.writing(),    error.writing(),    getpid()};
  Child child;
  child.pid = fork();
  if (child.pid == 0) execution.Run();
  const int fork_error = errno;
  if (child.pid < 0) return absl::ErrnoToStatus(fork_error, "cannot start a process");

  error.CloseWriting();
  if (const absl::Status failed = ErrorOfChild(error.reading(), spec); !failed.ok()) {
    // The guard must forget the group while its number is still in use.
    const Guard::Record record = {child.pid, 0};
    [[maybe_unused]] const ssize_t written = write(spec.guard_fd, &record, sizeof record);
    Reap(child.pid);
    return failed;
  }
  child.pid_fd = OpenPidFd(child.pid);
  if (child.pid_fd < 0) {
    const int pidfd_error = errno;
    kill(-child.pid, SIGKILL);
    Reap(child.pid);
    return absl::ErrnoToStatus(pidfd_error, "cannot watch a process");
  }
  child.stdout_fd = out.TakeReading();
  child.stderr_fd = err.TakeReading();
  child.stdin_fd = in.TakeWriting();
  for (const int fd : {child.stdin_fd, child.stdout_fd, child.stderr_fd})
    if (fd >= 0) fcntl(fd, F_SETFL, O_NONBLOCK);
  return child;
}

}  // namespace muster
