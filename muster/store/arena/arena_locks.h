// An arena's mutexes, for a process that waits for one of them (robust_lock.h), and which process may not be killed for
// keeping one. Borrows the arena; as thread-safe as that.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include "absl/functional/function_ref.h"
#include "muster/store/arena/arena.h"
#include "muster/store/arena/robust_lock.h"

namespace muster {

class Arena::Locks final : public LockedMemory {
 public:
  explicit Locks(Arena& arena) : arena_(arena) {}

  // Notes in the arena that this process is its ps. One that finds the arena of an earlier life calls it first.
  void TakeOver();

  void ForEachMutex(absl::FunctionRef<void(pthread_mutex_t* mutex)> take) override;
  // A stopped ps isn't killed if the model would be lost with it. A worker only loses its step.
  bool MayKill(pid_t process) override;

 private:
  Arena& arena_;
};

}  // namespace muster
