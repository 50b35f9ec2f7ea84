#include "muster/base/os/process_identity.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <sstream>
#include <string>

namespace muster {
namespace {

// Fields of /proc/PID/stat before the start time, counted from the state, which comes first after the name in
// parentheses.
constexpr int kFieldsBeforeStart = 19;

bool HasEnded(int pid_fd) {
  pollfd ended{.fd = pid_fd, .events = POLLIN, .revents = 0};
  return poll(&ended, 1, 0) > 0;
}

}  // namespace

std::optional<ProcessIdentity> IdentifyProcess(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  std::string skipped;
  for (int i = 0; i < kFieldsBeforeStart; ++i) fields >> skipped;
  ProcessIdentity identity{.pid = pid};
  if (!(fields >> identity.start)) return std::nullopt;
  return identity;
}

bool EndProcess(const ProcessIdentity& process) {
  // Opens the descriptor first: the process that has this number now keeps the number until the descriptor is closed.
  const auto pid_fd = static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(process.pid), 0));
  if (pid_fd < 0) return errno == ESRCH;
  bool gone = IdentifyProcess(static_cast<pid_t>(process.pid)) != process || HasEnded(pid_fd);
  if (!gone && syscall(SYS_pidfd_send_signal, pid_fd, SIGKILL, nullptr, 0) == 0) gone = HasEnded(pid_fd);
  close(pid_fd);
  return gone;
}

uint64_t PidNamespace() {
  struct stat info {};
  return stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
}

}  // namespace muster
