#include "muster/launch/backends/local/guard.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <set>
#include <sstream>
#include <utility>

#include "muster/launch/backends/local/kernel_file.h"
#include "muster/launch/backends/local/run_processes.h"

namespace muster {
namespace {

// Writes the name over the process's command line, in the memory where the kernel looks for it: proc(5), fields 48 to
// 51 of stat. The environment comes next there, into which a longer name may reach; the guard needs none. On failure
// the name stays the launcher's.
void SetCommandLine(const std::string& title) {
  const std::string line = ReadKernelFile("/proc/self/stat").value_or("");
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return;
  std::istringstream rest(line.substr(name_end + 1));
  std::string field;
  for (int i = 3; i < 48; ++i) rest >> field;
  uintptr_t begin = 0, end = 0, environment_begin = 0, environment_end = 0;
  rest >> begin >> end >> environment_begin >> environment_end;
  if (rest.fail() || begin == 0 || end <= begin) return;
  if (environment_begin == end && environment_end > end) end = environment_end;
  char* words = reinterpret_cast<char*>(begin);
  std::memset(words, 0, end - begin);
  title.copy(words, end - begin - 1);
}

// Keeps the terminal's signals and its closing away from the guard, and closes the launcher's files in it, so that a
// reader of the launcher's output through a pipe sees its end when the launcher ends. `kept`: stays open, above 2.
void Detach(int pipe, const std::string& run_id, int kept) {
  setsid();
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  prctl(PR_SET_NAME, "run-guard");
  SetCommandLine(Guard::Title(run_id));
  if (pipe != 0) dup2(pipe, 0);
  const int nothing = open("/dev/null", O_RDWR);
  dup2(nothing, 1);
  dup2(nothing, 2);
  if (kept > 3) close_range(3, static_cast<unsigned>(kept) - 1, 0);
  close_range(kept >= 3 ? static_cast<unsigned>(kept) + 1 : 3, ~0u, 0);
  if (chdir("/") != 0) return;  // on failure that directory stays in use while the run lasts, which does no harm
}

[[noreturn]] void GuardRun(int pipe, const std::string& run_id, const std::string& agent_id, int kept) {
  Detach(pipe, run_id, kept);
  std::set<pid_t> groups;
  for (;;) {
    Guard::Record record;
    const ssize_t got = read(0, &record, sizeof record);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof record) break;
    if (record.added != 0) {
      groups.insert(record.group);
    } else {
      groups.erase(record.group);
    }
  }
  for (const pid_t group : groups) kill(-group, SIGKILL);
  KillProcessesOfAgent(agent_id);
  _exit(0);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Guard>> Guard::Fork(const std::string& run_id, const std::string& agent_id,
                                                   int kept_fd) {
  int ends[2], ready[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "cannot make the guard's pipe");
  if (pipe2(ready, O_CLOEXEC) != 0) {
    const int error = errno;
    close(ends[0]);
    close(ends[1]);
    return absl::ErrnoToStatus(error, "cannot make the guard's pipe");
  }
  const pid_t pid = fork();
  if (pid == 0) {
    close(ends[1]);
    GuardRun(ends[0], run_id, agent_id, kept_fd);
  }
  const int error = errno;
  close(ends[0]);
  close(ready[1]);
  // This pipe ends when the guard has closed what it inherited, such as the held ports of the run's servers.
  char nothing;
  while (pid > 0 && read(ready[0], &nothing, 1) < 0 && errno == EINTR) {
  }
  close(ready[0]);
  if (pid < 0) {
    close(ends[1]);
    return absl::ErrnoToStatus(error, "cannot start the guard process");
  }
  return std::unique_ptr<Guard>(new Guard(ends[1], pid));
}

Guard::~Guard() {
  if (fd_ >= 0) close(fd_);
}

void Guard::Forget(pid_t group) {
  const Record record = {group, 0};
  // Fails only if the guard was killed; then no guard needs to forget.
  [[maybe_unused]] const ssize_t written = write(fd_, &record, sizeof record);
}

void Guard::Finish() {
  if (fd_ < 0) return;
  close(std::exchange(fd_, -1));
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace muster
