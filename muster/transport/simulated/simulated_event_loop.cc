#include "muster/transport/simulated/simulated_event_loop.h"

#include <algorithm>
#include <utility>

namespace muster {

void SimulatedEventLoop::Post(Handler handler) { CallAt(Now(), std::move(handler)); }

EventLoop::TimerId SimulatedEventLoop::CallAt(absl::Time when, Handler handler) {
  const absl::Time not_before = Now();
  MutexLock lock(mutex_);
  return events_.Add(std::max(when, not_before), std::move(handler));
}

void SimulatedEventLoop::CancelTimer(TimerId timer) {
  MutexLock lock(mutex_);
  events_.Cancel(timer);
}

bool SimulatedEventLoop::RunUntil(absl::FunctionRef<bool()> done, absl::Time deadline) {
  while (true) {
    if (done()) return true;
    Handler handler;
    {
      MutexLock lock(mutex_);
      const absl::Time next = events_.NextDue();
      const absl::Time now = clock_.Now();
      // Runs what is due by now even if the deadline has passed: it takes no time.
      if (next > std::max(now, deadline)) {
        if (deadline != absl::InfiniteFuture()) clock_.AdvanceTo(deadline);
        break;
      }
      if (next == absl::InfiniteFuture()) break;
      clock_.AdvanceTo(next);
      handler = events_.TakeDue(next);
    }
    handler();
  }
  return done();
}

}  // namespace muster
