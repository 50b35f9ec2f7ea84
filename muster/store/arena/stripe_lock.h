// The lock of one stripe, held by everything that reads or changes the stripe.
#pragma once

#include <pthread.h>

#include <cerrno>

#include "muster/store/arena/arena.h"
#include "muster/store/arena/arena_locks.h"

namespace muster {

// Locks one stripe. If the previous holder died, restores the stripe from a half-done update first.
class Arena::StripeLock {
 public:
  StripeLock(Arena& arena, int64_t stripe) : arena_(arena), mutex_(&arena.stripe(stripe).mutex) {
    arena.At(ArenaPoint::kBeforeLock);
    Locks locks(arena);
    if (LockRobust(mutex_, locks) == EOWNERDEAD) {
      arena.At(ArenaPoint::kOwnerDied);
      if (!arena.Has(PlantedBug::kSkipRestore)) arena.RestoreStripe(stripe);
      pthread_mutex_consistent(mutex_);
      arena.At(ArenaPoint::kRecovered);
    }
    arena.At(ArenaPoint::kLocked);
  }
  ~StripeLock() {
    if (arena_.probe_ == nullptr || !arena_.probe_->dying()) pthread_mutex_unlock(mutex_);
  }
  StripeLock(const StripeLock&) = delete;
  StripeLock& operator=(const StripeLock&) = delete;

 private:
  Arena& arena_;
  pthread_mutex_t* const mutex_;
};

}  // namespace muster
