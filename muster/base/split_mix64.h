// Random numbers that are the same for a seed with every library and on every machine, which std's distributions don't
// guarantee: SplitMix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators"). Each draw adds
// 0x9E3779B97F4A7C15 to the state and returns it mixed. Not thread-safe.
#pragma once

#include <cstdint>

namespace muster {

class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t state) : state_(state) {}

  uint64_t Next();
  // Uniform in [0, bound); `bound` isn't 0. Returns the high half of draw * bound, and discards draws that would favour
  // some numbers (Lemire 2019, arXiv 1805.10941).
  uint64_t Below(uint64_t bound);

  // The function that Next applies to the state: it maps neighbouring numbers to numbers far apart.
  static uint64_t Mix(uint64_t z);

 private:
  uint64_t state_;
};

}  // namespace muster
