// Tells a second interrupt from an echo of the first: timeout(1) sends its signal to a process and then to its group,
// so that the process has it twice and means it once. A state machine without a clock; not thread-safe.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace muster {

class SignalEcho {
 public:
  // The same signal of the same sender is an echo for so long after the one that counted. Nobody who sees that the
  // first did nothing decides faster.
  static constexpr absl::Duration kWithin = absl::Milliseconds(300);

  // Signal `number` was read at `now`, sent by process `sender`; 0: by the terminal, whose every key counts. What was
  // waiting together is read at one time.
  bool IsEcho(uint32_t number, uint32_t sender, absl::Time now) {
    if (sender != 0 && sender == sender_ && number == number_ && now - counted_ < kWithin) return true;
    number_ = number;
    sender_ = sender;
    counted_ = now;
    return false;
  }

 private:
  // Of the last that counted.
  uint32_t number_ = 0;
  uint32_t sender_ = 0;
  absl::Time counted_ = absl::InfinitePast();
};

}  // namespace muster
