// What a worker has of the work queue: which units are made ready, which are trained on, and which the next push
// brings. Where the one who takes units, the training thread and the client that pushes meet. Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "muster/base/mutex.h"
#include "muster/store/messages/stamp.h"
#include "muster/store/messages/work_messages.h"
#include "muster/store/messages/work_range.h"

namespace muster {

class WorkTally {
 public:
  // Who takes. A new request but for its spec; its incarnation is 0 as long as the store doesn't know this process. One
  // at a time.
  TakeWorkRequest Ask();
  // A unit came.
  void Taken(uint64_t ticket);
  // Nothing is ready and no step is under way: who trains waits for who takes, and talks to nobody else.
  bool Idle() const;

  // Who trains: as WorkSource's.
  bool Begin();
  void Over();

  // Who pushes. The store knows this process; once more: it had lost it, or what it had.
  void Joined(const Stamp& stamp);
  // What the next push brings: all that has begun since the last one that was counted. Stays the same until that push
  // is Counted or Dropped, however often it is asked and whatever begins meanwhile.
  WorkRange Seal();
  void Counted();
  void Dropped();  // it changed nothing: others get these units
  // What the store is to be told before the next push, in the order in which it was abandoned; and that it was.
  std::vector<uint64_t> Abandoned() const;
  void Told(size_t tickets);

  uint64_t counted() const;  // the last ticket that was

 private:
  void AbandonAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::optional<Stamp> stamp_ ABSL_GUARDED_BY(mutex_);
  uint64_t requests_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;  // ticket that came
  uint64_t over_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;  // the last
  uint64_t counted_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<uint64_t> taken_ ABSL_GUARDED_BY(mutex_);       // and not begun; 0: lost
  std::deque<uint64_t> open_ ABSL_GUARDED_BY(mutex_);        // begun, and not counted
  size_t sealed_ ABSL_GUARDED_BY(mutex_) = 0;                // of these, the first
  std::vector<uint64_t> abandoned_ ABSL_GUARDED_BY(mutex_);  // and not told
};

}  // namespace muster
