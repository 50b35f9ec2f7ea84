#include "muster/data/shuffle.h"

#include <numeric>
#include <utility>

namespace muster {

SplitMix64 ShuffleGenerator(uint64_t seed, uint64_t epoch) { return SplitMix64(SplitMix64::Mix(seed) + epoch); }

void ShuffleInPlace(std::span<size_t> places, uint64_t seed, uint64_t epoch) {
  SplitMix64 random = ShuffleGenerator(seed, epoch);
  for (size_t i = places.size(); i > 1; --i) std::swap(places[i - 1], places[random.Below(i)]);
}

std::vector<size_t> ShuffledOrder(size_t n, uint64_t seed, uint64_t epoch) {
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  ShuffleInPlace(order, seed, epoch);
  return order;
}

}  // namespace muster
