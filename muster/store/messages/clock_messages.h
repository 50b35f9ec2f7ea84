// The request for a ps's clock, which puts the traces of tasks on several hosts on one time line (docs/observe.md).
// Encoded like all messages (messages.h).
#pragma once

#include <cstdint>

namespace muster {

// The answer to kClock, whose request is empty.
struct ClockReply {
  int64_t nanos = 0;  // the clock of the ps's trace when it answers
};

}  // namespace muster
