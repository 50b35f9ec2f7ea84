// The clock of a task's events, injected. Thread-safe.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/monotonic.h"

namespace muster {

class TraceClock {
 public:
  virtual ~TraceClock() = default;
  virtual int64_t Nanos() const = 0;
};

// The host's monotonic clock, shared by all tasks of a host; transports stamp their replies with it.
class MonotonicTraceClock final : public TraceClock {
 public:
  int64_t Nanos() const override { return MonotonicNanos(); }
};

// Uses another clock, such as a simulated one, which must outlive this.
class OtherTraceClock final : public TraceClock {
 public:
  explicit OtherTraceClock(const Clock& clock) : clock_(clock) {}
  int64_t Nanos() const override { return absl::ToUnixNanos(clock_.Now()); }

 private:
  const Clock& clock_;
};

}  // namespace muster
