#include "muster/store/arena/arena_locks.h"

#include <unistd.h>

#include "muster/store/arena/shared_memory_order.h"

namespace muster {

void Arena::Locks::TakeOver() {
  Publish<int64_t>(arena_.header().server, getpid());
  Publish<uint64_t>(arena_.header().outlives, arena_.memory().is_kept() ? 1 : 0);
}

void Arena::Locks::ForEachMutex(absl::FunctionRef<void(pthread_mutex_t* mutex)> take) {
  take(&arena_.header().count_mutex);
  for (int64_t i = 0; i < arena_.layout().num_stripes(); ++i) take(&arena_.stripe(i).mutex);
}

bool Arena::Locks::MayKill(pid_t process) {
  return process != Observe(arena_.header().server) || Observe(arena_.header().outlives) != 0;
}

}  // namespace muster
