// The request of a worker in an ordered model for its turn (docs/store/gates.md). Encoded like
// all messages (messages.h).
#pragma once

#include <cstdint>

#include "muster/store/messages/stamp.h"

namespace muster {

// Answered when the sender is the next to push.
struct AwaitTurnRequest {
  Stamp stamp;
  uint64_t generation = 0;  // of its values; another one is answered with Aborted
  uint64_t clock = 0;       // the last of its pushes that some ps has
  uint64_t local_step = 0;  // the round, as in ps 0's last answer
  bool leaves = false;      // it pushes no more: answered when no worker does
};

struct AwaitTurnReply {
  uint64_t clock = 0;  // the last of the sender's pushes that this ps has
};

}  // namespace muster
