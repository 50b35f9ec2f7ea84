// The signals that end a run, as a descriptor that an FdLoop can wait for. Restores what was before when destroyed; who
// is forked meanwhile has them blocked. Used by the process's only thread.
#pragma once

#include <signal.h>

#include "muster/launch/supervise/signal_echo.h"

namespace muster {

class EndingSignals {
 public:
  // SIGINT, SIGTERM, and SIGHUP unless it is ignored: nohup, and a supervisor without a terminal, want it so.
  EndingSignals();
  ~EndingSignals();
  EndingSignals(const EndingSignals&) = delete;
  EndingSignals& operator=(const EndingSignals&) = delete;

  // Readable when there is one.
  int fd() const { return fd_; }
  // How many interrupts there were since the last time; echoes of one are one.
  int Take();

 private:
  int fd_;
  SignalEcho echo_;
  sigset_t mask_before_;
  void (*pipe_before_)(int);
};

}  // namespace muster
