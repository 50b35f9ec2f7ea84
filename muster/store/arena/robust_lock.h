// A process-shared robust mutex with a limit on the wait. The kernel hands on a dead holder's mutex; but a stopped
// holder (SIGSTOP, a debugger) would keep everybody waiting for ever, so a process that has waited for a while kills
// it, unless more would be lost with it than by waiting. Thread-safe.
#pragma once

#include <pthread.h>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace muster {

// How long a stopped holder keeps others waiting. A ps that waits hears no heartbeats, and spares its workers for that
// (ClientTable::OnTurn).
constexpr absl::Duration kStoppedHolderPatience = absl::Seconds(3);

// The memory that a mutex is in.
class LockedMemory {
 public:
  virtual ~LockedMemory() = default;
  // Calls `take` with all mutexes of the memory. A process that waits for one will soon wait for another, so all their
  // holders share one limit.
  virtual void ForEachMutex(absl::FunctionRef<void(pthread_mutex_t* mutex)> take) = 0;
  // Whether a stopped process may be killed because it holds a mutex. Asked at every look, once the limit is over.
  virtual bool MayKill(pid_t process) = 0;
};

// Locks the mutex, which is one of `memory`; returns 0 or EOWNERDEAD, as pthread_mutex_lock does. Other errors are bugs
// (CHECK). Waits as long as a stopped holder that may not be killed, and says so every ten seconds.
int LockRobust(pthread_mutex_t* mutex, LockedMemory& memory, absl::Duration patience = kStoppedHolderPatience);

}  // namespace muster
