// Tells a second interrupt from an echo of the first: timeout(1) signals first the process and then its group, so that
// the process gets twice what was meant once. A state machine without a clock; not thread-safe.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace muster {

class SignalEcho {
 public:
  // For this long after a signal that counted, the same signal from the same sender is an echo. Nobody notices sooner
  // that the first had no effect and interrupts again.
  static constexpr absl::Duration kWithin = absl::Milliseconds(300);

  // Signal `number` was read at `now`, sent by process `sender`. 0 is the terminal, where every key press counts.
  // Signals that were waiting together are read at the same time.
  bool IsEcho(uint32_t number, uint32_t sender, absl::Time now) {
    if (sender != 0 && sender == sender_ && number == number_ && now - counted_ < kWithin) return true;
    number_ = number;
    sender_ = sender;
    counted_ = now;
    return false;
  }

 private:
  // The last signal that counted.
  uint32_t number_ = 0;
  uint32_t sender_ = 0;
  absl::Time counted_ = absl::InfinitePast();
};

}  // namespace muster
