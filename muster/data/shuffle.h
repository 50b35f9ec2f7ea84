// The one source of random order in muster's input. Ours instead of std::shuffle and std::uniform_int_distribution,
// whose results differ between standard libraries: a seed must give the same batches on every machine, and after a
// restart. Thread-safe.
//
// The generator is SplitMix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators"): the state
// grows by 0x9E3779B97F4A7C15 a draw and is mixed on the way out. A number below n is the high half of draw * n, draws
// that would favour some numbers being thrown away (Lemire 2019, arXiv 1805.10941). The order is Fisher-Yates from the
// last place down: for i = n-1 ... 1, swap place i with place below(i + 1). The state starts at mix(seed) + epoch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace muster {

class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t state) : state_(state) {}

  uint64_t Next();
  // Uniform in [0, bound); `bound` isn't 0.
  uint64_t Below(uint64_t bound);

 private:
  uint64_t state_;
};

// What an epoch's order is drawn with.
SplitMix64 ShuffleGenerator(uint64_t seed, uint64_t epoch);

// Puts `places` in the order of this epoch: place i then holds what was at ShuffledOrder(places.size(), seed,
// epoch)[i].
void ShuffleInPlace(std::span<size_t> places, uint64_t seed, uint64_t epoch);

// The numbers 0 ... n-1 in the order of this epoch.
std::vector<size_t> ShuffledOrder(size_t n, uint64_t seed, uint64_t epoch);

}  // namespace muster
