// Tells processes that wait for a round of the synchronous gate to look again: a count in the arena's header. Short
// waits yield to other threads, longer ones sleep in the kernel (futex); a ring while nobody sleeps makes no system
// call. A ring may get lost when the ringer dies or stops, so nobody relies on the bell alone. Thread-safe.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "muster/store/arena/arena_format.h"

namespace muster {

class RoundBell {
 public:
  // The header must outlive it.
  explicit RoundBell(ArenaHeader& header) : control_(header.rounds) {}

  void Ring();
  // How often it has rung. Read it before looking at what you wait for.
  uint32_t rings() const;
  // Waits until it has rung since `rings` (true), or for `limit`.
  bool Wait(uint32_t rings, absl::Duration limit);

 private:
  RoundControl& control_;
};

}  // namespace muster
