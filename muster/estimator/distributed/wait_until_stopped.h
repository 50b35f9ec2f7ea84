// Waiting that Ctrl-C and SIGTERM end: what an evaluator does between two looks, and an Experiment before it begins.
// From its construction to its end these signals are a wish to stop, also while nobody waits; a second one ends the
// process. For() is for one thread.
#pragma once

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/base/os/stop_signal.h"

namespace muster {

class WaitUntilStopped {
 public:
  // Blocks. False, at once: a stop was asked for.
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
  const StopSignal signal_{[this] { Stop(); }};  // last: its thread uses what stands above
};

}  // namespace muster
