// The question for a ps's clock, by which the traces of tasks on several hosts are put on one (docs/observe.md).
// Encoded as all messages are (messages.h).
#pragma once

#include <cstdint>

namespace muster {

// Answer to kClock, whose request is empty.
struct ClockReply {
  int64_t nanos = 0;  // of the clock of the ps's trace, as it answers
};

}  // namespace muster
