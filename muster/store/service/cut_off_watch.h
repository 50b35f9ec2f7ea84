// Notices on a ps of a job over several hosts that it is cut off: its host's agent doesn't hear the supervisor, and no
// worker of another host is heard. Another ps may then take its place from the last checkpoint (docs/moves.md), so
// updates wait, and none is acknowledged, until somebody is heard again. Lives on the store's event loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "muster/store/arena/arena.h"
#include "muster/store/checkpoints/cut_follower.h"
#include "muster/store/gates/client_table.h"
#include "muster/transport/event_loop.h"

namespace muster {

class CutOffWatch {
 public:
  // Longer than a supervisor and a worker are silent between two messages, and less than the grace of any agent.
  static constexpr absl::Duration kAfter = absl::Seconds(5);
  static constexpr absl::Duration kPeriod = absl::Milliseconds(500);

  struct Options {
    std::string task;  // for messages
    // Returns a number that changes while the supervisor is heard; nullopt: nobody knows, so it counts as heard. Empty:
    // the ps is never cut off.
    std::function<std::optional<uint64_t>()> supervisor_count;
    std::function<std::shared_ptr<Arena>()> arena;  // returns null while there is no model
  };
  // All must outlive it.
  CutOffWatch(EventLoop& loop, const ClientTable& clients, CutFollower& cut, Options options);
  ~CutOffWatch();
  // Must be called when values have been loaded, which has ended every hold.
  void OnModel() {
    if (silent_) Hold();
  }

 private:
  void Look();
  void Hold();

  EventLoop& loop_;
  const ClientTable& clients_;
  CutFollower& cut_;
  const Options options_;

  std::optional<uint64_t> count_;
  absl::Time heard_;
  bool silent_ = false;  // at the last look; this process may have been stopped itself, so it looks twice
  std::optional<EventLoop::TimerId> timer_;
};

}  // namespace muster
