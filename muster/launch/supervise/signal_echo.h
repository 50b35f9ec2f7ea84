// Tells a second interrupt from an echo of the first. timeout(1) signals first the process and then its group; an
// engine of jobs signals a job's script, which passes that on, and all processes of the job. So the process gets twice
// what was meant once. A state machine without a clock; not thread-safe.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace muster {

class SignalEcho {
 public:
  // For this long after a signal that counted, the same signal from the same sender is an echo. Nobody notices sooner
  // that the first had no effect and interrupts again.
  static constexpr absl::Duration kWithin = absl::Milliseconds(300);
  // The same for what somebody else passes on: a shell that is busy.
  static constexpr absl::Duration kPassedOnWithin = absl::Seconds(2);

  // `self`: this process, if somebody passes on to it what it gets itself; what it sends itself is no echo of that. 0:
  // nobody does.
  explicit SignalEcho(uint32_t self = 0) : self_(self) {}

  // Signal `number` was read at `now`, sent by process `sender`. 0 is the terminal, where every key press counts.
  // Signals that were waiting together are read at the same time.
  bool IsEcho(uint32_t number, uint32_t sender, absl::Time now) {
    const bool passed_on = self_ != 0 && sender != self_ && sender_ != self_ && now - counted_ < kPassedOnWithin;
    const bool repeated = sender != 0 && sender == sender_ && now - counted_ < kWithin;
    if (number == number_ && (passed_on || repeated)) return true;
    number_ = number;
    sender_ = sender;
    counted_ = now;
    return false;
  }

 private:
  uint32_t self_;
  // The last signal that counted.
  uint32_t number_ = 0;
  uint32_t sender_ = 0;
  absl::Time counted_ = absl::InfinitePast();
};

}  // namespace muster
