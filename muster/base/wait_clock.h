// A clock for threads that sleep until something changes or a time has come. Tests pass a SimulatedWaitClock, move it
// by hand and never sleep. Thread-safe.
#pragma once

#include <cstddef>
#include <list>
#include <vector>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"

namespace muster {

class WaitClock : public Clock {
 public:
  // Waits until `changed` is notified, or spuriously, or until `deadline` at the latest. The caller holds `mutex`, and
  // checks its condition and Now() in a loop.
  virtual void WaitUntil(CondVar& changed, Mutex& mutex, absl::Time deadline) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) = 0;
};

// Uses RealClock. Lives for the whole process.
const WaitClock& RealWaitClock();

// Stands still until moved.
class SimulatedWaitClock final : public WaitClock {
 public:
  absl::Time Now() const override { return clock_.Now(); }
  void WaitUntil(CondVar& changed, Mutex& mutex, absl::Time deadline) const override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (deadline <= Now()) return;
    const auto waiter = Enter({&changed, &mutex, deadline});
    // An Advance between Enter and Wait needs `mutex` to wake us, so it comes after Wait has released it. An Advance
    // before Enter didn't know of us, so the deadline is checked once more.
    if (deadline > Now()) changed.Wait(mutex);
    Leave(waiter);
  }

  // Moves the clock and wakes every thread that waits by it. These waits' condition variables and mutexes must outlive
  // the call.
  void Advance(absl::Duration by) {
    clock_.Advance(by);
    std::vector<Waiter> waiters;
    {
      const MutexLock lock(mutex_);
      waiters.assign(waiters_.begin(), waiters_.end());
    }
    for (const Waiter& waiter : waiters) {
      const MutexLock lock(*waiter.mutex);
      waiter.changed->NotifyAll();
    }
  }
  // Blocks until `count` threads wait, each for a time that is still to come.
  void AwaitWaiters(size_t count) const {
    const MutexLock lock(mutex_);
    while (Waiting() < count) entered_.Wait(mutex_);
  }

 private:
  struct Waiter {
    CondVar* changed;
    Mutex* mutex;
    absl::Time deadline;
  };

  size_t Waiting() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    size_t waiting = 0;
    for (const Waiter& waiter : waiters_)
      if (waiter.deadline > clock_.Now()) ++waiting;
    return waiting;
  }
  std::list<Waiter>::iterator Enter(const Waiter& waiter) const {
    const MutexLock lock(mutex_);
    entered_.NotifyAll();
    return waiters_.insert(waiters_.end(), waiter);
  }
  // Removes only its own entry: another thread on the same condition variable may not have woken yet.
  void Leave(std::list<Waiter>::iterator waiter) const {
    const MutexLock lock(mutex_);
    waiters_.erase(waiter);
  }

  SimulatedClock clock_;
  mutable Mutex mutex_;
  mutable CondVar entered_;
  mutable std::list<Waiter> waiters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster
