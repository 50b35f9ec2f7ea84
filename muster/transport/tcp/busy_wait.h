// Whether a wait is worth a core: while one short wait follows the other, as in a chain of small requests, within a
// large message or between the steps of a small model, asking again and again is cheaper than to be put to sleep and
// woken, which costs both sides a trip through the scheduler and a virtual processor its caches (`./dev bench
// transport`). A wait that turns out long ends this, and so does another thread that wants the core; each time twice as
// many short waits have to precede the next try, so that neither an idle nor a crowded machine is kept busy. Why it is
// longer than usual: docs/performance/tried.md. Plain arithmetic on times in nanoseconds; not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

namespace muster {

class BusyWait {
 public:
  static constexpr int64_t kLongest = 1000 * 1000;
  static constexpr int kFewestShortWaits = 4;
  static constexpr int kMostShortWaits = 4096;

  // A wait begins. True: ask again, offering the core to other threads in between, while GoesOn; then sleep.
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
  // What was waited for has come, without a sleep or after it.
  void EndAwake() { needed_ = kFewestShortWaits; }
  void EndAsleep(int64_t now) { short_waits_ = now - start_ < kLongest ? short_waits_ + 1 : 0; }

 private:
  int64_t start_ = 0;
  int64_t switches_ = 0;
  int short_waits_ = 0;  // one after the other
  int needed_ = kFewestShortWaits;
};

}  // namespace muster
