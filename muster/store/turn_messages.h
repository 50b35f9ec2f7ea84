// The question of a worker of an ordered model for its turn (docs/store/gates.md). Encoded as
// all messages are (messages.h).
#pragma once

#include <cstdint>

#include "muster/store/stamp.h"

namespace muster {

// Answered when the sender is the next to push.
struct AwaitTurnRequest {
  Stamp stamp;
  uint64_t generation = 0;  // of the values that it has; another is answered with Aborted
  uint64_t clock = 0;       // of its pushes that some ps has, the last
  uint64_t local_step = 0;  // the round, as ps 0 answered it last
  bool leaves = false;      // it pushes no more: answered when nobody does
};

struct AwaitTurnReply {
  uint64_t clock = 0;  // of the sender's pushes that this ps has, the last
};

}  // namespace muster
