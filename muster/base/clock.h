// Injected time: production code asks a Clock; tests pass a SimulatedClock and move it by hand.
#pragma once

#include "absl/time/time.h"
#include "muster/base/mutex.h"

namespace muster {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Wall-clock time. Never runs backwards within one process.
  virtual absl::Time Now() const = 0;
};

// The machine's clock: the wall time at the first call plus monotonic time since. Lives for the whole process.
const Clock& RealClock();

// The same with the time that also passes while the machine is suspended (CLOCK_BOOTTIME), for limits that hold between
// machines.
const Clock& BootClock();

// Stands still until moved. Thread-safe.
class SimulatedClock final : public Clock {
 public:
  explicit SimulatedClock(absl::Time start = absl::FromUnixSeconds(1000000000)) : now_(start) {}
  absl::Time Now() const override {
    MutexLock lock(mutex_);
    return now_;
  }
  // Moves to `time`. Ignores a time in the past.
  void AdvanceTo(absl::Time time) {
    MutexLock lock(mutex_);
    if (time > now_) now_ = time;
  }
  void Advance(absl::Duration by) { AdvanceTo(Now() + by); }

 private:
  mutable Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster
