// An event loop in a world whose time is a SimulatedClock: nothing sleeps, and the same program runs the same way every
// time. All nodes of a simulated cluster share one loop; while one of them waits, the others run.
//
// Handlers run in the order of (time, request). RunUntil moves the clock to the next timer, or to its deadline; without
// either, nothing can happen any more and it returns. Used by one thread; any thread may Post.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/transport/event_loop.h"
#include "muster/transport/timer_queue.h"

namespace muster {

class SimulatedEventLoop final : public EventLoop {
 public:
  // `clock` must outlive the loop. Others may move it, too; the handlers that are due then run at the next RunUntil.
  explicit SimulatedEventLoop(SimulatedClock& clock) : clock_(clock) {}

  absl::Time Now() const override { return clock_.Now(); }
  void Post(Handler handler) override;
  TimerId CallAt(absl::Time when, Handler handler) override;
  void CancelTimer(TimerId timer) override;
  bool RunUntil(absl::FunctionRef<bool()> done, absl::Time deadline) override;

  // Runs what is due now, and everything that follows from it at once, without moving the clock.
  void RunReady() {
    RunUntil([] { return false; }, Now());
  }

 private:
  SimulatedClock& clock_;
  Mutex mutex_;
  TimerQueue events_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster
