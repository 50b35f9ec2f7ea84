#include "muster/store/work/work_tally.h"

namespace muster {

TakeWorkRequest WorkTally::Ask() {
  const MutexLock lock(mutex_);
  TakeWorkRequest request{.stamp = stamp_.value_or(Stamp()), .after = last_, .over = over_};
  request.stamp.sequence = ++requests_;
  return request;
}

void WorkTally::Taken(uint64_t ticket) {
  const MutexLock lock(mutex_);
  last_ = ticket;
  taken_.push_back(ticket);
}

bool WorkTally::Idle() const {
  const MutexLock lock(mutex_);
  return taken_.empty() && over_ == begun_;
}

bool WorkTally::Begin() {
  const MutexLock lock(mutex_);
  if (taken_.empty()) return true;
  const uint64_t ticket = taken_.front();
  taken_.pop_front();
  if (ticket == 0) return false;
  begun_ = ticket;
  open_.push_back(ticket);
  return true;
}

void WorkTally::Over() {
  const MutexLock lock(mutex_);
  over_ = begun_;
}

void WorkTally::AbandonAll() {
  abandoned_.insert(abandoned_.end(), open_.begin(), open_.end());
  for (uint64_t& ticket : taken_) {
    if (ticket != 0) abandoned_.push_back(ticket);
    ticket = 0;
  }
  open_.clear();
  sealed_ = 0;
  over_ = begun_;  // what was under way comes to nothing
}

void WorkTally::Joined(const Stamp& stamp) {
  const MutexLock lock(mutex_);
  if (stamp_) AbandonAll();
  stamp_ = stamp;
}

WorkRange WorkTally::Seal() {
  const MutexLock lock(mutex_);
  if (sealed_ == 0) sealed_ = open_.size();
  if (sealed_ == 0) return {};
  return {open_.front(), open_[sealed_ - 1]};
}

void WorkTally::Counted() {
  const MutexLock lock(mutex_);
  if (sealed_ > 0) counted_ = open_[sealed_ - 1];
  open_.erase(open_.begin(), open_.begin() + static_cast<std::ptrdiff_t>(sealed_));
  sealed_ = 0;
}

void WorkTally::Dropped() {
  const MutexLock lock(mutex_);
  const auto end = open_.begin() + static_cast<std::ptrdiff_t>(sealed_);
  abandoned_.insert(abandoned_.end(), open_.begin(), end);
  open_.erase(open_.begin(), end);
  sealed_ = 0;
}

std::vector<uint64_t> WorkTally::Abandoned() const {
  const MutexLock lock(mutex_);
  return abandoned_;
}

void WorkTally::Told(size_t tickets) {
  const MutexLock lock(mutex_);
  // More may have been abandoned meanwhile.
  abandoned_.erase(abandoned_.begin(), abandoned_.begin() + static_cast<std::ptrdiff_t>(tickets));
}

uint64_t WorkTally::counted() const {
  const MutexLock lock(mutex_);
  return counted_;
}

}  // namespace muster
