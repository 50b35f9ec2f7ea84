// How those who wait for a round of the synchronous gate, in different processes, hear that they should look again: a
// count in the arena's header. Short waits give way to other threads, longer ones sleep in the kernel (futex); who
// rings while nobody sleeps makes no system call. A ring may be missed by who dies or stops: nobody relies on it alone.
// Thread-safe.
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
  // How often it has rung. To be taken before one looks at what one waits for.
  uint32_t rings() const;
  // Until it has rung since (true), or for so long.
  bool Wait(uint32_t rings, absl::Duration limit);

 private:
  RoundControl& control_;
};

}  // namespace muster
