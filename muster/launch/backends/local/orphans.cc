#include "muster/launch/backends/local/orphans.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "muster/launch/system/awaited_children.h"

namespace muster {
namespace {

int watching = 0;      // objects that live
sigset_t mask_before;  // the first one's

sigset_t ChildEnds() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  return set;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Orphans>> Orphans::Watch(FdLoop& loop) {
  const sigset_t ends = ChildEnds();
  const int fd = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) return absl::ErrnoToStatus(errno, "cannot watch for the ends of child processes");
  return std::unique_ptr<Orphans>(new Orphans(loop, fd));
}

Orphans::Orphans(FdLoop& loop, int fd) : loop_(loop), fd_(fd) {
  const sigset_t ends = ChildEnds();
  if (watching++ == 0) sigprocmask(SIG_BLOCK, &ends, &mask_before);
  loop_.Watch(fd_, POLLIN, [this](short) { OnSignal(); });
}

Orphans::~Orphans() {
  loop_.Forget(fd_);
  close(fd_);
  if (--watching == 0) sigprocmask(SIG_SETMASK, &mask_before, nullptr);
}

void Orphans::OnSignal() const {
  signalfd_siginfo info;
  while (read(fd_, &info, sizeof info) == sizeof info) {  // one signal may stand for several ends
  }
  Reap();
}

void Orphans::Reap() const {
  for (;;) {
    siginfo_t ended = {};
    if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid == 0 || IsAwaitedChild(ended.si_pid))
      return;
    waitpid(ended.si_pid, nullptr, WNOHANG);
  }
}

}  // namespace muster
