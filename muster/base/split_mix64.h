// Random numbers that are the same for a seed with every library and on every machine, which those of std's
// distributions aren't: SplitMix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators"). The
// state grows by 0x9E3779B97F4A7C15 a draw and is mixed on the way out. Not thread-safe.
#pragma once

#include <cstdint>

namespace muster {

class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t state) : state_(state) {}

  uint64_t Next();
  // Uniform in [0, bound); `bound` isn't 0. It is the high half of draw * bound, draws that would favour some numbers
  // being thrown away (Lemire 2019, arXiv 1805.10941).
  uint64_t Below(uint64_t bound);

  // What Next does to the state on its way out: neighbouring numbers come out far from each other.
  static uint64_t Mix(uint64_t z);

 private:
  uint64_t state_;
};

}  // namespace muster
