// A process-shared robust mutex with a limit on the wait. The kernel hands on a dead holder's mutex; but a stopped
// holder (SIGSTOP, a debugger) would keep everybody waiting for ever, so a process that has waited for a while kills
// it. Thread-safe.
#pragma once

#include <pthread.h>

#include "absl/time/time.h"

namespace muster {

// How long a stopped holder keeps others waiting. Well below a worker's lease (LeaseOptions): a ps that waits hears no
// heartbeats, and every lease runs on.
constexpr absl::Duration kStoppedHolderPatience = absl::Seconds(3);

// Locks the mutex; returns 0 or EOWNERDEAD, as pthread_mutex_lock does. Other errors are bugs (CHECK).
int LockRobust(pthread_mutex_t* mutex, absl::Duration patience = kStoppedHolderPatience);

}  // namespace muster
