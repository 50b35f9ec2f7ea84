// The signals that end a run, as a descriptor that an FdLoop can wait for. The destructor restores the previous signal
// handling. Processes forked meanwhile have the signals blocked. Used by the process's only thread.
#pragma once

#include <signal.h>

#include "muster/launch/supervise/signal_echo.h"

namespace muster {

class EndingSignals {
 public:
  // Takes SIGINT, SIGTERM, and SIGHUP unless it is ignored, as under nohup or in a supervisor without a terminal.
  // `passed_on`: the process gets some of them twice, from two senders (SignalEcho).
  explicit EndingSignals(bool passed_on = false);
  ~EndingSignals();
  EndingSignals(const EndingSignals&) = delete;
  EndingSignals& operator=(const EndingSignals&) = delete;

  // Readable when a signal has arrived.
  int fd() const { return fd_; }
  // Returns the number of interrupts since the last call. A signal and its echo (SignalEcho) count as one.
  int Take();

 private:
  int fd_;
  SignalEcho echo_;
  sigset_t mask_before_;
  void (*pipe_before_)(int);
};

// Blocks SIGINT, SIGTERM and SIGHUP from now on, outside of EndingSignals, too: one that comes between two of these
// waits for the second.
void BlockEndingSignals();

}  // namespace muster
