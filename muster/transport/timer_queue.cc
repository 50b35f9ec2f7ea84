#include "muster/transport/timer_queue.h"

#include <algorithm>
#include <utility>

namespace muster {

EventLoop::TimerId TimerQueue::Add(absl::Time when, EventLoop::Handler handler) {
  const uint64_t id = next_id_++;
  live_.emplace(id, std::move(handler));
  heap_.push_back({when, id});
  std::push_heap(heap_.begin(), heap_.end());
  return EventLoop::TimerId{id};
}

void TimerQueue::Cancel(EventLoop::TimerId timer) {
  live_.erase(static_cast<uint64_t>(timer));
  constexpr size_t kWorthTheSweep = 64;
  if (heap_.size() < kWorthTheSweep || heap_.size() < 2 * live_.size()) return;
  heap_.erase(
      std::remove_if(heap_.begin(), heap_.end(), [this](const Entry& entry) { return !live_.contains(entry.id); }),
      heap_.end());
  std::make_heap(heap_.begin(), heap_.end());
}

absl::Time TimerQueue::NextDue() {
  DropCancelled();
  return heap_.empty() ? absl::InfiniteFuture() : heap_.front().when;
}

EventLoop::Handler TimerQueue::TakeDue(absl::Time now) {
  DropCancelled();
  if (heap_.empty() || heap_.front().when > now) return nullptr;
  auto it = live_.find(heap_.front().id);
  EventLoop::Handler handler = std::move(it->second);
  live_.erase(it);
  PopFront();
  return handler;
}

void TimerQueue::PopFront() {
  std::pop_heap(heap_.begin(), heap_.end());
  heap_.pop_back();
}

void TimerQueue::DropCancelled() {
  while (!heap_.empty() && !live_.contains(heap_.front().id)) PopFront();
}

}  // namespace muster
