#include "muster/launch/backends/local/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/launch/backends/local/guard.h"
#include "muster/launch/backends/local/pid_fd.h"

namespace muster {
namespace {

// Closes both ends unless they were taken.
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

// All that happens between fork and exec; only what is allowed there (signal-safety(7)), hence made ready before.
struct Execution {
  const char* program;
  char** arguments;
  char** environment;
  int empty_stdin, stdout_fd, stderr_fd, guard_fd, memory_fd, error_fd;
  pid_t parent;

  [[noreturn]] void Run() const {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);  // it died before the line above
    dup2(empty_stdin, 0);
    dup2(stdout_fd, 1);
    dup2(stderr_fd, 2);
    if (memory_fd >= 0) fcntl(memory_fd, F_SETFD, 0);
    const Guard::Record record = {getpid(), 1};
    [[maybe_unused]] ssize_t written = write(guard_fd, &record, sizeof record);
    // The program finds signals as a shell would have left them. SIGHUP stays as it is: nohup.
    for (const int signal_number : {SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGCHLD}) signal(signal_number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    execve(program, arguments, environment);
    const int error = errno;
    written = write(error_fd, &error, sizeof error);
    _exit(127);
  }
};

// The error that execve failed with in the child; 0 once the program runs, which closes the pipe.
int ExecError(int error_fd) {
  int error = 0;
  ssize_t got;
  do {
    got = read(error_fd, &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  return got == sizeof error ? error : 0;
}

void Reap(pid_t pid) {
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

absl::StatusOr<Child> StartChild(const ChildSpec& spec) {
  Pipe out, err, error;
  RETURN_IF_ERROR(out.Open());
  RETURN_IF_ERROR(err.Open());
  RETURN_IF_ERROR(error.Open());
  const int empty_stdin = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (empty_stdin < 0) return absl::ErrnoToStatus(errno, "cannot open /dev/null");
  std::vector<char*> arguments = Pointers(spec.arguments);
  std::vector<char*> environment = Pointers(spec.environment);
  const Execution execution = {spec.program.c_str(), arguments.data(), environment.data(), empty_stdin,
                               out.writing(),        err.writing(),    spec.guard_fd,      spec.memory_fd,
                               error.writing(),      getpid()};
  Child child;
  child.pid = fork();
  if (child.pid == 0) execution.Run();
  const int fork_error = errno;
  close(empty_stdin);
  if (child.pid < 0) return absl::ErrnoToStatus(fork_error, "cannot start a process");

  error.CloseWriting();
  if (const int exec_error = ExecError(error.reading()); exec_error != 0) {
    Reap(child.pid);
    return absl::ErrnoToStatus(exec_error, absl::StrCat("cannot execute '", spec.program, "'"));
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
  for (const int fd : {child.stdout_fd, child.stderr_fd}) fcntl(fd, F_SETFL, O_NONBLOCK);
  return child;
}

}  // namespace muster
