// The timers of one event loop, ordered by (time, order of creation). Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "muster/transport/event_loop.h"

namespace muster {

class TimerQueue {
 public:
  EventLoop::TimerId Add(absl::Time when, EventLoop::Handler handler);
  // Ignores a timer that has run or was cancelled.
  void Cancel(EventLoop::TimerId timer);

  // Returns when the first timer is due; InfiniteFuture without timers.
  absl::Time NextDue();

  // Removes and returns the first timer's handler if it is due at `now`; otherwise a null handler.
  EventLoop::Handler TakeDue(absl::Time now);

 private:
  struct Entry {
    absl::Time when;
    uint64_t id;
    // Reversed, because std::push_heap keeps the largest in front.
    bool operator<(const Entry& other) const { return when != other.when ? when > other.when : id > other.id; }
  };

  void PopFront();
  void DropCancelled();

  uint64_t next_id_ = 1;
  std::vector<Entry> heap_;  // cancelled timers stay until they come to the front, or are half of it
  absl::flat_hash_map<uint64_t, EventLoop::Handler> live_;
};

}  // namespace muster
