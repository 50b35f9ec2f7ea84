// A fair lock: threads get it in the order in which they asked. A loop that releases it and takes it again at once
// doesn't starve the others, as it would with a Mutex. Thread-safe.
#pragma once

#include <cstdint>

#include "muster/base/mutex.h"

namespace muster {

class ABSL_LOCKABLE TurnLock {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    const MutexLock lock(mutex_);
    const uint64_t mine = asked_++;
    while (mine != turn_) changed_.Wait(mutex_);
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    const MutexLock lock(mutex_);
    ++turn_;
    changed_.NotifyAll();
  }
  // How many threads wait for it now.
  uint64_t waiting() const {
    const MutexLock lock(mutex_);
    return asked_ == turn_ ? 0 : asked_ - turn_ - 1;
  }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  uint64_t asked_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t turn_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Holds `lock` for its own lifetime. `lock` must outlive it.
class ABSL_SCOPED_LOCKABLE HoldTurn {
 public:
  explicit HoldTurn(TurnLock& lock) ABSL_EXCLUSIVE_LOCK_FUNCTION(lock) : lock_(lock) { lock_.Lock(); }
  ~HoldTurn() ABSL_UNLOCK_FUNCTION() { lock_.Unlock(); }
  HoldTurn(const HoldTurn&) = delete;
  HoldTurn& operator=(const HoldTurn&) = delete;

 private:
  TurnLock& lock_;
};

}  // namespace muster
