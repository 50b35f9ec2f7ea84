#include "muster/launch/agent_server/agent_start.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/clock.h"
#include "muster/base/files/file_system.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/launch/backends/local/detached_process.h"
#include "muster/launch/backends/local/guard.h"
#include "muster/launch/system/process_mark.h"
#include "muster/launch/task/task_environment.h"
#include "muster/transport/io/socket.h"

namespace muster {
namespace {

constexpr char kReady[] = "+";
constexpr std::string_view kNotExecuted = "its program can't be executed";
constexpr size_t kMostWords = 4096;
constexpr int kSignalCode = 128;  // what a shell adds to a signal's number
constexpr int kFirstFreeFd = kReadinessFd + 1;

// All that happens between fork and exec. Only async-signal-safe calls are allowed there (signal-safety(7)), so
// everything is prepared before. No descriptor is one of those that the program gets.
struct DetachedProgram {
  const char* program;
  char** arguments;
  int nothing, log, pipe;

  // Its child has no parent but init, and, as it doesn't lead its session, never gets a terminal.
  [[noreturn]] void Run() const {
    setsid();
    const pid_t pid = fork();
    if (pid != 0) _exit(pid > 0 ? 0 : 1);
    dup2(nothing, 0);
    dup2(log, 1);
    dup2(log, 2);
    dup2(pipe, kReadinessFd);
    close_range(kFirstFreeFd, ~0U, 0);
    for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGCHLD}) signal(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    if (chdir("/") == 0) execve(program, arguments, environ);
    (void)!write(kReadinessFd, kNotExecuted.data(), kNotExecuted.size());
    _exit(127);
  }
};

Socket AboveThose(int fd) { return Socket(fcntl(fd, F_DUPFD_CLOEXEC, kFirstFreeFd)); }

// Reads what the program tells until it has told all or `patience` is over.
absl::Status AwaitReadiness(int fd, absl::Duration patience) {
  const absl::Time deadline = RealClock().Now() + patience;
  std::string told;
  while (told != kReady && told.size() < kMostWords) {
    pollfd ready = {fd, POLLIN, 0};
    const absl::Duration left = std::max(deadline - RealClock().Now(), absl::ZeroDuration());
    const int found = poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(left)));
    if (found < 0 && errno == EINTR) continue;
    if (found <= 0) return absl::DeadlineExceededError("it hasn't begun within " + absl::FormatDuration(patience));
    char piece[256];
    const ssize_t got = Uninterrupted([&] { return read(fd, piece, sizeof piece); });
    if (got <= 0) break;
    told.append(piece, static_cast<size_t>(got));
  }
  if (told == kReady) return absl::OkStatus();
  return told.empty() ? absl::InternalError("it has ended before it listened") : absl::UnavailableError(told);
}

std::string CommandLineOf(const std::string& process) {
  return PosixFileSystem().ReadFile(absl::StrCat("/proc/", process, "/cmdline")).value_or("");
}

// As ps has it under COMM.
std::string NameOfProcess(pid_t pid) {
  const std::string name = PosixFileSystem().ReadFile(absl::StrCat("/proc/", pid, "/comm")).value_or("");
  return std::string(absl::StripTrailingAsciiWhitespace(name));
}

// Without this one.
std::vector<pid_t> AllProcesses() {
  std::vector<pid_t> processes;
  std::error_code no_proc;
  std::filesystem::directory_iterator process("/proc", no_proc);
  for (; !no_proc && process != std::filesystem::directory_iterator(); process.increment(no_proc)) {
    pid_t pid = 0;
    if (absl::SimpleAtoi(process->path().filename().string(), &pid) && pid != getpid()) processes.push_back(pid);
  }
  return processes;
}

// Lives of an agent have one command line: its next one is the child of its guard.
void SignalAgents(const std::string& command_line, int number) {
  for (const pid_t pid : AllProcesses())
    if (!command_line.empty() && CommandLineOf(absl::StrCat(pid)) == command_line) kill(pid, number);
}

// Returns whether this process is the parent: "PID (NAME) STATE PARENT …", where the name may have anything in it.
bool IsChild(pid_t pid) {
  const std::string stat = PosixFileSystem().ReadFile(absl::StrCat("/proc/", pid, "/stat")).value_or("");
  const std::vector<std::string> words = absl::StrSplit(stat.substr(std::min(stat.size(), stat.rfind(')') + 1)), ' ');
  pid_t parent = 0;
  return words.size() > 2 && absl::SimpleAtoi(words[2], &parent) && parent == getpid();
}

// Ends what tasks have left, once there is neither an agent to do so nor a guard, which would start one.
void EndWhatNobodyEnds(const std::string& agent) {
  std::vector<pid_t> left;
  for (const pid_t pid : AllProcesses()) {
    if (!IsChild(pid)) continue;
    if (const std::string name = NameOfProcess(pid); name == agent || name == kGuardName) return;
    left.push_back(pid);
  }
  for (const pid_t pid : left) kill(pid, SIGKILL);
}

// Waits until no child is left, and passes signals on to processes with this command line, unless it is empty. All
// signals are blocked. Returns the code of the child of that name that has ended last: others are what tasks have left,
// which comes to a subreaper and to the first process of a container. An agent and a guard that are killed together
// leave these alive.
int AwaitAll(const std::string& agents, const std::string& name) {
  sigset_t awaited;
  sigemptyset(&awaited);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT}) sigaddset(&awaited, number);
  int code = 0;
  bool agent_has_ended = false;
  for (;;) {
    siginfo_t ended = {};
    if (Uninterrupted([&] { return waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT); }) != 0) return code;
    if (ended.si_pid > 0) {
      // It has its name until it is waited for.
      const bool is_agent = NameOfProcess(ended.si_pid) == name;
      int wait_status = 0;
      Uninterrupted([&] { return waitpid(ended.si_pid, &wait_status, 0); });
      if (is_agent) code = WIFSIGNALED(wait_status) ? kSignalCode + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
      agent_has_ended |= is_agent;
      continue;
    }
    if (agent_has_ended) EndWhatNobodyEnds(name);
    const int number = sigwaitinfo(&awaited, nullptr);
    if (number == SIGTERM || number == SIGINT) SignalAgents(agents, number);
  }
}

}  // namespace

absl::Status StartDetached(const std::string& program, std::vector<std::string> arguments, int log_fd,
                           absl::Duration patience) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "cannot make a pipe");
  const Socket reading(ends[0]);
  Socket end(ends[1]);
  Socket writing = AboveThose(end.fd());
  const Socket null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Socket nothing = AboveThose(null.fd()), log = AboveThose(log_fd);
  if (!writing.valid() || !nothing.valid() || !log.valid())
    return absl::ErrnoToStatus(errno, "cannot prepare a program's descriptors");
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const DetachedProgram detached = {program.c_str(), pointers.data(), nothing.fd(), log.fd(), writing.fd()};
  unsetenv(kRunIdVariable);
  unsetenv(kAgentIdVariable);
  ClearMark();
  const pid_t child = fork();
  if (child == 0) detached.Run();
  if (child < 0) return absl::ErrnoToStatus(errno, "cannot start a process");
  Uninterrupted([&] { return waitpid(child, nullptr, 0); });
  end.Close();
  writing.Close();
  return AwaitReadiness(reading.fd(), patience);
}

absl::Status GoOnInChild(const std::string& job, const WaitingProcess& waiting) {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return absl::ErrnoToStatus(errno, "cannot become a subreaper");
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "cannot make a pipe");
  const Socket reading(ends[0]);
  Socket writing(ends[1]);
  const pid_t child = fork();
  if (child < 0) return absl::ErrnoToStatus(errno, "cannot start a process");
  if (child == 0) {
    // Until the parent has another command line, a signal that is meant for the agent may be sent to it.
    writing.Close();
    char byte = 0;
    Uninterrupted([&] { return read(reading.fd(), &byte, 1); });
    return absl::OkStatus();
  }
  const std::string name = NameOfProcess(getpid());
  const std::string agents = waiting.passes_signals ? CommandLineOf("self") : "";
  DetachProcess(absl::StrCat("run-wait agent ", job), {writing.fd()}, /*needs_environment=*/false);
  writing.Close();
  const int code = AwaitAll(agents, name);
  if (!waiting.own_file.empty()) unlink(waiting.own_file.c_str());
  _exit(code);
}

void TellReadiness(const absl::Status& status) {
  struct stat info {};
  if (fstat(kReadinessFd, &info) != 0 || !S_ISFIFO(info.st_mode)) return;
  const std::string told = status.ok() ? kReady : std::string(status.message());
  (void)!write(kReadinessFd, told.data(), told.size());
  close(kReadinessFd);
}

}  // namespace muster
