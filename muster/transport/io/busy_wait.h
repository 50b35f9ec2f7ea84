// Decides whether a wait is worth a core. While one short wait follows another, as in a chain of small requests, within
// a large message or between the steps of a small model, polling is cheaper than sleeping and being woken, which costs
// both sides a trip through the scheduler and a virtual processor its caches (`./dev bench transport`). A wait that
// turns out long ends the polling, and so does another thread that wants the core; each time twice as many short waits
// must precede the next attempt, so that neither an idle nor a crowded machine is kept busy. Why kLongest is longer
// than usual: docs/performance/tried.md. Plain arithmetic on times in nanoseconds; not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

namespace muster {

class BusyWait {
 public:
  static constexpr int64_t kLongest = 1000 * 1000;
  static constexpr int kFewestShortWaits = 4;
  static constexpr int kMostShortWaits = 4096;

  // Begins a wait. True: poll, offering the core to other threads between polls, while GoesOn returns true; then sleep.
  // `switches`: how often this thread has lost its core so far.
  bool Begin(int64_t now, int64_t switches) {
    start_ = now;
    switches_ = switches;
    return short_waits_ >= needed_;
  }
  bool GoesOn(int64_t now, int64_t switches) {
    if (now - start_ < kLongest && switches == switches_) return true;
    short_waits_ = 0;
    needed_ = std::min(2 * needed_, kMostShortWaits);
    return false;
  }
  // The awaited event has come: EndAwake without a sleep, EndAsleep after one.
  void EndAwake() { needed_ = kFewestShortWaits; }
  void EndAsleep(int64_t now) { short_waits_ = now - start_ < kLongest ? short_waits_ + 1 : 0; }

 private:
  int64_t start_ = 0;
  int64_t switches_ = 0;
  int short_waits_ = 0;  // in a row
  int needed_ = kFewestShortWaits;
};

}  // namespace muster
