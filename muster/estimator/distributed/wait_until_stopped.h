// A wait that Ctrl-C and SIGTERM end: for an evaluator between two looks, and for an Experiment before it begins. While
// this object lives, these signals request a stop, even when no thread waits; a second one ends the process. Call For()
// from one thread.
#pragma once

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/base/os/stop_signal.h"

namespace muster {

class WaitUntilStopped {
 public:
  // Blocks. Returns false at once when a stop was requested.
  bool For(absl::Duration time) {
    const absl::Time until = RealClock().Now() + time;
    MutexLock lock(mutex_);
    for (absl::Duration left = time; !stopped_ && left > absl::ZeroDuration(); left = until - RealClock().Now())
      bell_.WaitFor(mutex_, left);
    return !stopped_;
  }

 private:
  void Stop() {
    MutexLock lock(mutex_);
    stopped_ = true;
    bell_.NotifyAll();
  }

  Mutex mutex_;
  CondVar bell_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  const StopSignal signal_{[this] { Stop(); }};  // last: its thread uses what is above
};

}  // namespace muster
