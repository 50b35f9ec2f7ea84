#include "muster/store/calls/worker_progress.h"

#include <algorithm>

#include "muster/store/messages/membership_messages.h"

namespace muster {

void WorkerProgress::OnPush(absl::Time now) {
  if (answered_at_ == absl::InfiniteFuture() || steps() < HeartbeatRequest::kFirstSteps) return;
  nanos_[measured_++ % kWindow] = absl::ToInt64Nanoseconds(now - answered_at_);
  answered_at_ = absl::InfiniteFuture();
  std::array<int64_t, kWindow> sorted = nanos_;
  const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(std::min(measured_, kWindow));
  const auto middle = sorted.begin() + (end - sorted.begin()) / 2;
  std::nth_element(sorted.begin(), middle, end);
  step_nanos_.store(*middle, std::memory_order_relaxed);
}

void WorkerProgress::OnAnswer(absl::Time now) {
  answered_at_ = now;
  steps_.fetch_add(1, std::memory_order_release);
}

std::string WorkerProgress::busy() const {
  const std::string* busy = busy_.load(std::memory_order_acquire);
  return busy == nullptr ? "" : *busy;
}

// A program that makes its words from numbers must not fill the memory with them.
WorkerProgress::Busy::Busy(WorkerProgress& progress, const std::string& what)
    : progress_(progress), before_(progress.busy_.load(std::memory_order_relaxed)) {
  const bool room = progress.names_.size() < kMostNames;
  const std::string& name = *progress.names_.insert(room && !what.empty() ? what : "busy").first;
  progress.busy_.store(&name, std::memory_order_release);
}

// The step in which it was is no measure of a step.
WorkerProgress::Busy::~Busy() {
  progress_.answered_at_ = absl::InfiniteFuture();
  progress_.busy_.store(before_, std::memory_order_release);
}

}  // namespace muster
