// What is due when, in the order of (time, tie, creation). Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "muster/transport/event_loop.h"

namespace muster {

template <typename Value>
class TimerQueue {
 public:
  using Id = EventLoop::TimerId;

  Id Add(absl::Time when, Value value, uint64_t tie = 0) {
    const Id id{next_id_++};
    PutBack(id, when, std::move(value), tie);
    return id;
  }
  // Adds again what TakeFirst has returned; it can still be cancelled by its number.
  void PutBack(Id id, absl::Time when, Value value, uint64_t tie = 0) {
    live_.emplace(id, std::move(value));
    heap_.push_back({when, tie, id});
    std::push_heap(heap_.begin(), heap_.end());
  }
  // Ignores a number that was taken or cancelled.
  void Cancel(Id id) {
    live_.erase(id);
    constexpr size_t kWorthTheSweep = 64;
    if (heap_.size() < kWorthTheSweep || heap_.size() < 2 * live_.size()) return;
    std::erase_if(heap_, [this](const Entry& entry) { return !live_.contains(entry.id); });
    std::make_heap(heap_.begin(), heap_.end());
  }

  // Returns when the first is due; InfiniteFuture if there is none.
  absl::Time NextDue() {
    while (!heap_.empty() && !live_.contains(heap_.front().id)) PopFront();
    return heap_.empty() ? absl::InfiniteFuture() : heap_.front().when;
  }
  // Removes and returns what NextDue has told of; there must be something.
  std::pair<Id, Value> TakeFirst() {
    auto taken = live_.extract(heap_.front().id);
    PopFront();
    return {taken.key(), std::move(taken.mapped())};
  }

 private:
  struct Entry {
    absl::Time when;
    uint64_t tie;
    Id id;
    // Reversed, because std::push_heap keeps the largest in front.
    bool operator<(const Entry& other) const {
      if (when != other.when) return when > other.when;
      return tie != other.tie ? tie > other.tie : id > other.id;
    }
  };

  void PopFront() {
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
  }

  uint64_t next_id_ = 1;
  std::vector<Entry> heap_;  // what is cancelled stays until it comes to the front, or is half of it
  absl::flat_hash_map<Id, Value> live_;
};

}  // namespace muster
