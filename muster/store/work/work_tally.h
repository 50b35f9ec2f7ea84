// A worker's units of the work queue: which are being prepared, which are trained on, and which the next push brings.
// Shared by the thread that takes units, the training thread and the client that pushes. Thread-safe.
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
  // For the taker. Returns a new request without its spec; its incarnation is 0 while the store doesn't know this
  // process. One at a time.
  TakeWorkRequest Ask();
  // A unit came.
  void Taken(uint64_t ticket);
  // Nothing is ready and no step is under way: the training thread waits for the taker, and talks to nobody else.
  bool Idle() const;

  // For the training thread: as WorkSource's.
  bool Begin();
  void Over();

  // For the pusher. The store knows this process; if called again, the store had lost it, or its units.
  void Joined(const Stamp& stamp);
  // Returns what the next push brings: all units begun since the last counted push. Stays the same until that push is
  // Counted or Dropped, however often it is asked and whatever begins meanwhile.
  WorkRange Seal();
  void Counted();
  void Dropped();  // it changed nothing: others get these units
  // The units to report to the store as given up before the next push, in the order in which they were abandoned; Told
  // says that this was done.
  std::vector<uint64_t> Abandoned() const;
  void Told(size_t tickets);

  uint64_t counted() const;  // the last counted ticket

 private:
  void AbandonAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::optional<Stamp> stamp_ ABSL_GUARDED_BY(mutex_);
  uint64_t requests_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;  // the last ticket that came
  uint64_t over_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;  // the last one
  uint64_t counted_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<uint64_t> taken_ ABSL_GUARDED_BY(mutex_);       // not begun; 0: lost
  std::deque<uint64_t> open_ ABSL_GUARDED_BY(mutex_);        // begun, but not counted
  size_t sealed_ ABSL_GUARDED_BY(mutex_) = 0;                // of open_, how many at its front are sealed
  std::vector<uint64_t> abandoned_ ABSL_GUARDED_BY(mutex_);  // not told yet
};

}  // namespace muster
