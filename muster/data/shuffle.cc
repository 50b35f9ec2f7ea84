#include "muster/data/shuffle.h"

#include <numeric>
#include <utility>

namespace muster {
namespace {

uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

}  // namespace

uint64_t SplitMix64::Next() {
  state_ += 0x9E3779B97F4A7C15u;
  return Mix(state_);
}

uint64_t SplitMix64::Below(uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  const uint64_t uneven = -bound % bound;  // 2^64 mod bound: so many low halves would come up once too often
  for (;;) {
    const Wide product = static_cast<Wide>(Next()) * bound;
    if (static_cast<uint64_t>(product) >= uneven) return static_cast<uint64_t>(product >> 64);
  }
}

SplitMix64 ShuffleGenerator(uint64_t seed, uint64_t epoch) { return SplitMix64(Mix(seed) + epoch); }

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
