// Guards an arena's counters and its clients' numbers, which change together or not at all. The ps counts the updates
// that it applies, a direct worker counts its own, each under one process-shared robust lock and through the journal: a
// process killed in the middle leaves either nothing or a commit that the next holder finishes.
#pragma once

#include <cstdint>

#include "muster/store/arena/arena.h"
#include "muster/store/messages/work_range.h"

namespace muster {

// What is counted for one push of a client.
struct UpdateCount {
  int client = 0;
  uint64_t sequence = 0;
  uint64_t generation = 0;   // of the values that it was computed from
  bool update = false;       // it has changed trainable variables
  bool applied = false;      // it has been applied whole on this ps
  uint32_t minibatches = 0;  // > 0: this is ps 0 and every ps has the push: global_step goes up
  uint64_t clock = 0;
  WorkRange work = {};  // ps 0: the units of the work queue that it brings
  bool spent = false;   // these units are done, though nothing changes by the push: its gradients weren't finite
};

class Arena::CountLock {
 public:
  // Waits for the current holder, and finishes what a dead one had begun. The arena must outlive it.
  explicit CountLock(Arena& arena);
  ~CountLock();
  CountLock(const CountLock&) = delete;
  CountLock& operator=(const CountLock&) = delete;

  // Makes all of these changes at once.
  void Commit(const ArenaCount& counted);
  // Counts what hasn't been counted of the push, once for each sequence number. False: other values were loaded
  // meanwhile, or its units of the work queue were given to others, and it counts for nothing.
  bool Add(const UpdateCount& update);
  // Counts a direct update of that staleness for the status page. Not journalled: a death may lose one.
  void NoteDirect(int client, uint64_t staleness);
  // Resets the counters for Load: nobody has updated the new values yet.
  void Restart(int64_t global_step, int64_t minibatches);

 private:
  void FinishJournal();

  Arena& arena_;
};

}  // namespace muster
