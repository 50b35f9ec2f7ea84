#include "muster/launch/experiment/detach.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/text/environment_list.h"
#include "muster/launch/foreground/cluster_plan.h"
#include "muster/launch/system/process_mark.h"

namespace muster {
namespace {

constexpr char kHomeVariable[] = "MUSTER_HOME";

// What the processes on the way to the supervisor report through a pipe; exec closes it.
struct DetachNews {
  pid_t pid;  // of the supervisor; 0: it couldn't be started
  int error;  // errno then
};

class DetachFd {
 public:
  explicit DetachFd(int fd) : fd_(fd) {}
  ~DetachFd() {
    if (fd_ >= 0) close(fd_);
  }
  DetachFd(const DetachFd&) = delete;
  DetachFd& operator=(const DetachFd&) = delete;
  int get() const { return fd_; }
  void Close() { close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

// Returns the same file as a descriptor above the three that the supervisor gets anew. Closes `fd`.
int AboveStderr(int fd) {
  if (fd < 0) return fd;
  const int above = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  close(fd);
  return above;
}

// Returns the user's environment, which `git` and the like may need, without the ids of the run to which this command
// itself belongs and of the backend that started it, because the supervisor outlives both.
std::vector<std::string> SupervisorEnvironment(const Home& home) {
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (IsVariable(text, kRunIdVariable) || IsVariable(text, kAgentIdVariable) || IsVariable(text, kHomeVariable))
      continue;
    environment.push_back(text);
  }
  std::error_code no_folder;
  const std::string folder = std::filesystem::absolute(home.path(), no_folder).string();
  environment.push_back(absl::StrCat(kHomeVariable, "=", no_folder ? home.path() : folder));
  environment.push_back(absl::StrCat(kDetachedVariable, "=1"));
  return environment;
}

std::vector<char*> DetachPointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// All that happens after a fork. Only async-signal-safe calls are allowed there (signal-safety(7)), so everything is
// prepared before.
struct Detaching {
  const char* program;
  char** arguments;
  char** environment;
  int nothing, log, lock, news;  // descriptors, none below 3
  mode_t users_umask;
  bool as_child;
  pid_t parent;

  // Runs in the first child. The second has no parent but init, so nobody has to wait for it. It doesn't lead its
  // session, so it can never get a terminal.
  [[noreturn]] void Run() const {
    ClearMark();
    if (as_child) prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (as_child && getppid() != parent) _exit(0);  // the parent died before the line above
    setsid();
    signal(SIGHUP, SIG_IGN);
    if (!as_child) {
      const pid_t pid = fork();
      if (pid > 0) _exit(0);
      if (pid < 0) Fail(errno);
    }
    Become();
  }

  [[noreturn]] void Become() const {
    dup2(nothing, 0);
    dup2(log, 1);
    dup2(log, 2);
    const unsigned first = static_cast<unsigned>(std::min(lock, news));
    const unsigned second = static_cast<unsigned>(std::max(lock, news));
    if (first > 3) close_range(3, first - 1, 0);
    if (second > first + 1) close_range(first + 1, second - 1, 0);
    close_range(second + 1, ~0U, 0);
    for (const int number : {SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGCHLD}) signal(number, SIG_DFL);
    // Keeps a signal that arrives before the supervisor listens (EndingSignals) from killing it; it gets the signal
    // then.
    sigset_t heard_later;
    sigemptyset(&heard_later);
    sigaddset(&heard_later, SIGINT);
    sigaddset(&heard_later, SIGTERM);
    sigprocmask(SIG_SETMASK, &heard_later, nullptr);
    umask(users_umask);
    if (chdir("/") != 0) Fail(errno);  // the user's folder may be removed, its disk unmounted
    const DetachNews there = {getpid(), 0};
    [[maybe_unused]] const ssize_t written = write(news, &there, sizeof there);
    execve(program, arguments, environment);
    Fail(errno);
  }

  [[noreturn]] void Fail(int error) const {
    const DetachNews failed = {0, error};
    [[maybe_unused]] const ssize_t written = write(news, &failed, sizeof failed);
    _exit(127);
  }
};

// Reads to the end of the pipe; then the program runs or never will.
DetachNews ReadNews(int fd) {
  DetachNews last = {0, EPIPE};
  for (;;) {
    DetachNews news;
    const ssize_t got = read(fd, &news, sizeof news);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof news) return last;
    last = news;
  }
}

void ReapDetaching(pid_t pid) {
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// `words`: the arguments, to which the lock's descriptor is added.
absl::StatusOr<pid_t> StartDetached(const Home& home, std::vector<std::string> words, const RunLock& lock,
                                    const std::string& log_path, const SupervisorStart& start) {
  const DetachFd lock_fd(fcntl(lock.fd(), F_DUPFD, 3));
  const DetachFd log(AboveStderr(open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)));
  if (log.get() < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", log_path));
  const DetachFd nothing(AboveStderr(open("/dev/null", O_RDONLY | O_CLOEXEC)));
  int ends[2];
  if (lock_fd.get() < 0 || nothing.get() < 0 || pipe2(ends, O_CLOEXEC) != 0)
    return absl::ErrnoToStatus(errno, "cannot start a supervisor");
  const DetachFd reading(ends[0]);
  DetachFd writing(AboveStderr(ends[1]));

  words.insert(words.begin(), start.muster_command);
  words.insert(words.end(), {"--lock-fd", absl::StrCat(lock_fd.get())});
  std::vector<std::string> variables = SupervisorEnvironment(home);
  std::vector<char*> arguments = DetachPointers(words);
  std::vector<char*> environment = DetachPointers(variables);
  const Detaching detaching = {.program = start.muster_command.c_str(),
                               .arguments = arguments.data(),
                               .environment = environment.data(),
                               .nothing = nothing.get(),
                               .log = log.get(),
                               .lock = lock_fd.get(),
                               .news = writing.get(),
                               .users_umask = start.users_umask,
                               .as_child = start.as_child,
                               .parent = getpid()};
  const pid_t child = fork();
  if (child == 0) detaching.Run();
  if (child < 0) return absl::ErrnoToStatus(errno, "cannot start a supervisor");
  writing.Close();
  const DetachNews news = ReadNews(reading.get());
  if (!start.as_child || news.pid == 0) ReapDetaching(child);
  if (news.pid != 0) return news.pid;
  return absl::ErrnoToStatus(news.error, absl::StrCat("cannot start the supervisor '", start.muster_command, "'"));
}

}  // namespace

absl::StatusOr<pid_t> StartSupervisor(const Home& home, const ExperimentId& id, RunLock lock,
                                      const SupervisorStart& start) {
  return StartDetached(home, {"supervise", id.ToString()}, lock, home.supervisor_log(id), start);
}

absl::StatusOr<pid_t> StartCollector(const Home& home, const ExperimentId& id, RunLock lock,
                                     const std::string& log_path, const SupervisorStart& start) {
  return StartDetached(home, {"home", "collect", id.ToString()}, lock, log_path, start);
}

}  // namespace muster
