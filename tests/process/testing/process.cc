#include "tests/process/testing/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "muster/base/files/file_system.h"
#include "muster/launch/system/pid_fd.h"

namespace muster {
namespace {

std::vector<std::string> EnvironmentFor(const ProcessOptions& options) {
  std::vector<std::string> variables;
  const auto is_replaced = [&options](const char* own) {
    return std::any_of(options.environment.begin(), options.environment.end(),
                       [own](const auto& variable) { return absl::StartsWith(own, variable.first + "="); });
  };
  for (char** own = environ; *own != nullptr; ++own)
    if (!absl::StartsWith(*own, "TF_CONFIG=") && !absl::StartsWith(*own, "MUSTER_") &&
        !absl::StartsWith(*own, "SLURM_") && !is_replaced(*own))
      variables.emplace_back(*own);
  for (const auto& [name, value] : options.environment) variables.push_back(absl::StrCat(name, "=", value));
  return variables;
}

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Returns milliseconds for poll.
int Until(absl::Time deadline) {
  return static_cast<int>(std::max<int64_t>(0, absl::ToInt64Milliseconds(deadline - absl::Now())));
}

bool WaitReadable(int fd, absl::Time deadline) {
  pollfd readable = {fd, POLLIN, 0};
  return poll(&readable, 1, Until(deadline)) == 1;
}

// Closes `fd` and sets it to -1 at the end of the output.
void Read(int& fd, std::string& into) {
  char buffer[4096];
  const ssize_t got = read(fd, buffer, sizeof buffer);
  if (got > 0) {
    into.append(buffer, static_cast<size_t>(got));
  } else {
    close(std::exchange(fd, -1));
  }
}

}  // namespace

Process::Process(const std::vector<std::string>& words, const ProcessOptions& options) {
  const std::vector<std::string> environment = EnvironmentFor(options);
  const std::vector<char*> arguments = Pointers(words);
  const std::vector<char*> variables = Pointers(environment);
  int out_ends[2], err_ends[2];
  if (pipe2(out_ends, O_CLOEXEC) != 0 || pipe2(err_ends, O_CLOEXEC) != 0) std::abort();
  pid_ = fork();
  if (pid_ == 0) {
    // Ignored, and inherited, when the tests run under nohup or in a script's background.
    for (const int number : {SIGHUP, SIGINT, SIGQUIT}) signal(number, SIG_DFL);
    dup2(out_ends[1], STDOUT_FILENO);
    dup2(options.output_together ? out_ends[1] : err_ends[1], STDERR_FILENO);
    if (options.directory.empty() || chdir(options.directory.c_str()) == 0)
      execve(arguments[0], arguments.data(), variables.data());
    _exit(127);
  }
  close(out_ends[1]);
  close(err_ends[1]);
  out_fd_ = out_ends[0];
  err_fd_ = err_ends[0];
  pid_fd_ = OpenPidFd(pid_);
  EXPECT_GE(pid_fd_, 0) << words[0];
}

Process::~Process() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  for (const int fd : {out_fd_, err_fd_, pid_fd_})
    if (fd >= 0) close(fd);
}

absl::Duration HangsAfter() {
  int seconds = 0;
  const char* given = std::getenv("MUSTER_TEST_PATIENCE");
  return given != nullptr && absl::SimpleAtoi(given, &seconds) ? absl::Seconds(seconds) : absl::Minutes(2);
}

void Process::Signal(int number) const { ASSERT_EQ(SignalPidFd(pid_fd_, number), 0); }

size_t Process::WaitFor(int& fd, std::string& into, const std::string& text, size_t from) {
  const absl::Time deadline = absl::Now() + HangsAfter();
  while (into.find(text, from) == std::string::npos) {
    const bool comes = fd >= 0 && WaitReadable(fd, deadline);
    EXPECT_TRUE(comes) << "no '" << text << (fd < 0 ? "'" : "' yet") << " in: " << into;
    if (!comes) break;
    Read(fd, into);
  }
  return into.find(text, from);
}

size_t Process::WaitForErrLine(const std::string& beginning, const std::string& text, size_t from) {
  for (;;) {
    const size_t begin = WaitForErr("\n" + beginning, from);
    if (begin == std::string::npos) return begin;
    const size_t end = WaitForErr("\n", begin + 1);
    if (end == std::string::npos) return end;
    const size_t behind = begin + 1 + beginning.size();
    if (absl::StrContains(absl::string_view(err).substr(behind, end - behind), text)) return end;
    from = end;
  }
}

void Process::ReadSomeOut() {
  ASSERT_TRUE(WaitReadable(out_fd_, absl::Now() + HangsAfter())) << out;
  Read(out_fd_, out);
  ASSERT_GE(out_fd_, 0) << "its end came after: " << out;
}

int Process::Wait() {
  const absl::Time deadline = absl::Now() + HangsAfter();
  while (out_fd_ >= 0 || err_fd_ >= 0) {
    pollfd fds[] = {{out_fd_, POLLIN, 0}, {err_fd_, POLLIN, 0}};  // poll ignores -1
    if (poll(fds, 2, Until(deadline)) <= 0) break;
    if (fds[0].revents != 0) Read(out_fd_, out);
    if (fds[1].revents != 0) Read(err_fd_, err);
  }
  return ReapBy(deadline);
}

int Process::Reap() { return ReapBy(absl::Now() + HangsAfter()); }

int Process::ReapBy(absl::Time deadline) {
  const bool ended = WaitReadable(pid_fd_, deadline);
  EXPECT_TRUE(ended) << "it hangs; so far:\n" << out << err;
  if (!ended) Signal(SIGKILL);
  int status = 0;
  EXPECT_GT(waitpid(std::exchange(pid_, 0), &status, 0), 0);
  if (!ended) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Watched::~Watched() {
  for (const int fd : fds_) close(fd);
}

void Watched::Add(pid_t pid) {
  const int fd = OpenPidFd(pid);
  if (fd < 0 && errno == ESRCH) return;  // it has ended already
  ASSERT_GE(fd, 0) << pid;
  fds_.push_back(fd);
}

void Watched::WaitForEnds() const {
  const absl::Time deadline = absl::Now() + HangsAfter();
  for (const int fd : fds_) ASSERT_TRUE(WaitReadable(fd, deadline)) << "still running";
}

std::vector<std::string> After(const std::string& text, const std::string& beginning) {
  std::vector<std::string> found;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    if (absl::StartsWith(line, beginning)) found.push_back(line.substr(beginning.size()));
  }
  return found;
}

std::vector<std::string> EntriesOf(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<pid_t> ProcessesWith(const std::string& variable) {
  std::vector<pid_t> found;
  std::error_code gone;  // processes may end meanwhile
  for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid)) continue;
    const std::string environment = PosixFileSystem().ReadFile((entry.path() / "environ").string()).value_or("");
    for (const absl::string_view one : absl::StrSplit(environment, '\0')) {
      if (one == variable) found.push_back(pid);
    }
  }
  return found;
}

}  // namespace muster
