// A process-shared robust mutex, waited for no longer than sense allows. A dead holder's mutex is handed on by the
// kernel; a holder that was stopped (SIGSTOP, a debugger) would keep everybody waiting for ever: whoever has waited for
// a while kills it. Thread-safe.
#pragma once

#include <pthread.h>

#include "absl/time/time.h"

namespace muster {

// How long a stopped holder keeps others waiting. Well below a worker's lease (LeaseOptions): a ps that waits hears no
// heartbeats, and everybody's lease goes on running.
constexpr absl::Duration kStoppedHolderPatience = absl::Seconds(3);

// Returns 0 or EOWNERDEAD, as pthread_mutex_lock does; the caller has the mutex then. Other errors are bugs (CHECK).
int LockRobust(pthread_mutex_t* mutex, absl::Duration patience = kStoppedHolderPatience);

}  // namespace muster
