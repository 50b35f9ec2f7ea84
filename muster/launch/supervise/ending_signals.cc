#include "muster/launch/supervise/ending_signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include "muster/base/clock.h"

namespace muster {

void BlockEndingSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);
}

EndingSignals::EndingSignals(bool passed_on) : echo_(passed_on ? static_cast<uint32_t>(getpid()) : 0) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  struct sigaction hangup;
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) sigaddset(&set, SIGHUP);
  sigprocmask(SIG_BLOCK, &set, &mask_before_);
  pipe_before_ = signal(SIGPIPE, SIG_IGN);  // write returns an error once the reader has gone
  fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

EndingSignals::~EndingSignals() {
  close(fd_);
  signal(SIGPIPE, pipe_before_);
  sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

int EndingSignals::Take() {
  const absl::Time now = RealClock().Now();
  int interrupts = 0;
  signalfd_siginfo info;
  while (read(fd_, &info, sizeof info) == sizeof info)
    if (!echo_.IsEcho(info.ssi_signo, info.ssi_pid, now)) ++interrupts;
  return interrupts;
}

}  // namespace muster
