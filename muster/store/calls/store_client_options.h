// How a client of the store reaches its ps and how long it waits for them. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/time/time.h"
#include "muster/observe/track.h"
#include "muster/store/arena/arena_probe.h"
#include "muster/store/model/apply_choice.h"
#include "muster/store/model/wire_precision.h"

namespace muster {

struct StoreClientOptions {
  std::string task;   // "worker:1"
  std::string where;  // "host, pid 12"
  uint64_t incarnation = 1;
  uint64_t life = 0;  // of the task: see JoinRequest
  // How long a ps may be unreachable, or silent about one request, before the operation fails with Unavailable.
  absl::Duration patience = absl::Seconds(60);
  // The same until this client has joined for the first time: the ps may still be starting. Counts if it is longer.
  absl::Duration first_patience = absl::ZeroDuration();
  // How long it may be silent about requests that move or write the whole model: initialisation, parts of checkpoints,
  // their commit. For being unreachable, `patience` holds even then.
  absl::Duration transfer_patience = absl::Minutes(30);
  // How long a gate or a barrier may hold an answer back while the ps can be reached.
  absl::Duration gate_patience = absl::Minutes(30);
  // How long this process sleeps in a round of direct apply before it checks whether it must still wait; ten times as
  // long in a long wait. 0 in a simulated world, where others run in this very thread.
  absl::Duration round_sleep = kRoundSleep;
  static constexpr absl::Duration kRoundSleep = absl::Milliseconds(5);
  // How long Join waits for the lease of an earlier life of this task.
  absl::Duration join_patience = absl::Seconds(12);
  // Checked while Join, AwaitReady, gates and barriers wait: true ends them with Cancelled. (Work under way is finished
  // unless a ps is gone: shutdown_wait.h.)
  std::function<bool()> stop_requested = [] { return false; };
  absl::Duration stop_patience = absl::Seconds(5);  // how long a ps may be silent after a stop
  ApplyChoice apply = ApplyChoice::kServer;         // which process applies updates, from AwaitReady on
  bool tcp_asked_for = false;  // warn that --transport=tcp has no effect when this worker applies its own updates
  // What is sent when the ps apply; a worker that applies its own updates sends nothing and ignores this.
  WireOptions wire = {};
  ArenaProbe* probe = nullptr;  // for tests of direct apply
  Track* track = nullptr;       // borrowed: of the thread that uses the client; null: nothing is recorded
  // Updates that may be sent in parts (overlapped_push.h) go in parts of about this many bytes; 0: each as one message.
  size_t part_bytes = size_t{512} << 10;
};

}  // namespace muster
