// What a ps is told when it is started. A plain value.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/base/files/file_system.h"
#include "muster/observe/track.h"
#include "muster/store/arena/arena.h"
#include "muster/store/checkpoints/part_saver.h"
#include "muster/store/direct/arena_listener.h"
#include "muster/store/gates/client_table.h"
#include "muster/store/queues/fifo_queues.h"
#include "muster/store/work/work_queue.h"

namespace muster {

inline constexpr absl::Duration kUsualLinger = absl::Milliseconds(300);

struct StoreOptions {
  std::string task = "ps:0";         // for messages and the status page
  bool lead = true;                  // ps 0: counts the global step and commits checkpoints
  std::vector<std::string> workers;  // the tasks that may join, the chief among them: "chief:0", "worker:0", …
  LeaseOptions lease;
  uint64_t incarnation = 1;  // of this process
  // How long the store answers late questions after the end; after a shutdown, kUsualLinger at most.
  absl::Duration linger = kUsualLinger;
  // How long a shutdown waits, before that, for those who are training: they learn of it with their next push, and the
  // chief then saves its last checkpoint.
  absl::Duration shutdown_grace = absl::Seconds(20);
  FileSystem* files = nullptr;  // borrowed for the service's life
  // The only directory into which checkpoints are written; empty: the first in which a chief announces a save.
  std::string model_dir;
  PartSaver::Background background;
  // Where the model is kept. A process that holds its descriptor can start another service on it after this one was
  // killed, which continues where this one was. Null: memory of its own, gone with it.
  std::shared_ptr<ArenaMemory> memory;
  // All clients are threads of this process: their model ends with them, and no update need survive a death.
  bool one_process = false;
  ArenaListener* port = nullptr;  // borrowed: where workers on this host get the arena; null: nobody does
  ArenaProbe* probe = nullptr;    // of tests
  // Returns a number that changes while the launcher of a job over several hosts is heard on this one; see CutOffWatch.
  // Empty: this ps is never cut off.
  std::function<std::optional<uint64_t>()> supervisor_count = nullptr;
  Track* track = nullptr;                            // borrowed: of the loop's thread; null: nothing is recorded
  uint64_t queue_bytes = FifoQueuesOptions().bytes;  // that all queues here may hold when they are full
  std::shared_ptr<WorkQueue> work;                   // of ps 0, shared with takers that need no messages; or null
};

}  // namespace muster
