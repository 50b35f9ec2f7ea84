// The clock of a task's events, injected. Thread-safe.
#pragma once

#include <cstdint>

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

}  // namespace muster
