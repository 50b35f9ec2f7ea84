#include "muster/observe/track.h"

#include <algorithm>
#include <utility>

namespace muster {

namespace {

// A wait that is interrupted for less than this, and then continues, counts as one wait.
constexpr int64_t kBlinkNanos = 10'000'000;

}  // namespace

Track::Track(std::string name, const TraceClock& clock, size_t ring_events)
    : name_(std::move(name)),
      clock_(clock),
      ring_(ring_events > 0 ? std::make_unique<EventRing>(ring_events) : nullptr),
      kept_in_(ring_.get()) {}

void Track::KeepEvents(size_t ring_events) {
  if (ring_ == nullptr) ring_ = std::make_unique<EventRing>(ring_events);
  kept_in_.store(ring_.get(), std::memory_order_release);
}

void Track::Record(Activity activity, int64_t begin, int64_t end, const SpanDetail& detail) {
  const int64_t duration = std::max<int64_t>(end - begin, 0);
  if (in_step_) parts_[static_cast<size_t>(activity)] += duration;
  if (open_ != nullptr) open_->nested_ += duration;
  if (EventRing* const ring = kept_in_.load(std::memory_order_acquire))
    ring->Push({begin, duration, step_, detail.bytes, detail.flow, activity});
}

void Track::SetWaitingFor(std::string whom) {
  MutexLock lock(mutex_);
  waiting_for_ = std::move(whom);
}

std::string Track::waiting_for() const {
  MutexLock lock(mutex_);
  return waiting_for_;
}

void Track::Span::Open(Activity activity, const SpanDetail& detail) {
  activity_ = activity;
  detail_ = detail;
  outer_ = std::exchange(track_->open_, this);
  begin_ = track_->Nanos();
  const Interrupted& before = track_->interrupted_[static_cast<size_t>(activity)];
  const bool goes_on = track_->in_step_ && before.since >= track_->step_begin_ && begin_ - before.until < kBlinkNanos;
  since_ = goes_on ? before.since : begin_;
  track_->NowDoing(activity, since_);
}

void Track::Span::Close() {
  const int64_t end = track_->Nanos();
  track_->open_ = outer_;
  track_->Record(activity_, begin_, end, detail_);
  if (track_->in_step_) track_->parts_[static_cast<size_t>(activity_)] -= nested_;
  track_->interrupted_[static_cast<size_t>(activity_)] = {since_, end};
  track_->NowDoing(outer_ != nullptr ? outer_->activity_ : Activity::kStep, end);
}

Track::StepScope::StepScope(Track* track, int64_t step) : track_(track) {
  if (track_ == nullptr) return;
  begin_ = track_->Nanos();
  track_->step_ = step;
  track_->step_begin_ = begin_;
  track_->in_step_ = true;
  track_->parts_.fill(0);
  track_->NowDoing(Activity::kStep, begin_);
}

Track::StepScope::~StepScope() {
  if (track_ == nullptr) return;
  track_->in_step_ = false;
  if (given_up_) return;
  const int64_t end = track_->Nanos();
  track_->times_.Add(end - begin_, track_->parts_);
  track_->Record(Activity::kStep, begin_, end);
}

}  // namespace muster
