// A ring of fixed size that passes events from the thread that records them to the one that writes them, without locks
// or allocations: one producer, one consumer. Events that find it full are dropped and counted, so that recording never
// waits for a disk.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "muster/observe/activity.h"

namespace muster {

struct TraceEvent {
  int64_t begin = 0;     // nanoseconds of the trace's clock
  int64_t duration = 0;  // nanoseconds
  int64_t step = 0;      // the global step known when the thread's step began
  uint64_t bytes = 0;    // 0: not applicable
  uint64_t flow = 0;     // the update that it belongs to (trace_part.h); 0: none
  Activity activity{};
};

class EventRing {
 public:
  explicit EventRing(size_t capacity) : events_(capacity) {}

  // Called by the producer.
  void Push(const TraceEvent& event) {
    const uint64_t at = pushed_.load(std::memory_order_relaxed);
    if (at - taken_.load(std::memory_order_acquire) == events_.size()) {
      left_out_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    events_[at % events_.size()] = event;
    pushed_.store(at + 1, std::memory_order_release);
  }

  // Called by the consumer: passes the available events to `take`, oldest first.
  void Take(absl::FunctionRef<void(const TraceEvent&)> take) {
    const uint64_t end = pushed_.load(std::memory_order_acquire);
    for (uint64_t at = taken_.load(std::memory_order_relaxed); at != end; ++at) {
      take(events_[at % events_.size()]);
      taken_.store(at + 1, std::memory_order_release);
    }
  }

  // Called by any thread.
  uint64_t left_out() const { return left_out_.load(std::memory_order_relaxed); }

 private:
  std::vector<TraceEvent> events_;
  std::atomic<uint64_t> pushed_{0};
  std::atomic<uint64_t> taken_{0};
  std::atomic<uint64_t> left_out_{0};
};

}  // namespace muster
