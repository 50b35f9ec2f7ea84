// The counters of an arena and the numbers of its clients, which change together or not at all. The ps counts for whom
// it applies, a direct worker counts for itself, each of them in one process-shared robust lock and through the
// journal: who is killed in the middle leaves either nothing or a commit that the next holder finishes.
#pragma once

#include <cstdint>

#include "muster/store/arena/arena.h"
#include "muster/store/messages/work_range.h"

namespace muster {

// One push of a client, as far as it is to be counted.
struct UpdateCount {
  int client = 0;
  uint64_t sequence = 0;
  uint64_t generation = 0;   // of the values that it was computed from
  bool update = false;       // it has changed trainable variables
  bool applied = false;      // it has been applied whole on this ps
  uint32_t minibatches = 0;  // > 0: this is ps 0, and every ps has it: global_step goes up
  uint64_t clock = 0;
  WorkRange work = {};  // ps 0: what of the work queue it brings
  bool spent = false;   // … which is done, though nothing changes by it: its gradients weren't finite
};

class Arena::CountLock {
 public:
  // Waits for whoever counts now, and finishes what a dead one had begun. The arena must outlive it.
  explicit CountLock(Arena& arena);
  ~CountLock();
  CountLock(const CountLock&) = delete;
  CountLock& operator=(const CountLock&) = delete;

  // All at once.
  void Commit(const ArenaCount& counted);
  // Counts what of the push hasn't been counted, once for each sequence number. False: other values have been loaded
  // since, or what it brings of the work queue is others' now, and it counts for nothing.
  bool Add(const UpdateCount& update);
  // For the status page: a direct update of that staleness. Not journalled: a death may lose one.
  void NoteDirect(int client, uint64_t staleness);
  // Load: other values, which nobody has updated yet.
  void Restart(int64_t global_step, int64_t minibatches);

 private:
  void FinishJournal();

  Arena& arena_;
};

}  // namespace muster
