#include "muster/launch/backends/local/guard.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <utility>

#include "muster/launch/backends/local/detached_process.h"
#include "muster/launch/backends/local/run_processes.h"

namespace muster {
namespace {

[[noreturn]] void GuardRun(int pipe, const std::string& run_id, const std::string& agent_id) {
  DetachProcess(Guard::Title(run_id), {pipe}, /*needs_environment=*/false);
  std::set<pid_t> groups;
  for (;;) {
    Guard::Record record;
    const ssize_t got = read(pipe, &record, sizeof record);
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

absl::StatusOr<std::unique_ptr<Guard>> Guard::Fork(const std::string& run_id, const std::string& agent_id) {
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
    GuardRun(ends[0], run_id, agent_id);
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
