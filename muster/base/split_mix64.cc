#include "muster/base/split_mix64.h"

namespace muster {

uint64_t SplitMix64::Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

uint64_t SplitMix64::Next() {
  state_ += 0x9E3779B97F4A7C15u;
  return Mix(state_);
}

uint64_t SplitMix64::Below(uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  const uint64_t uneven = -bound % bound;  // 2^64 mod bound: this many low halves would come up once too often
  for (;;) {
    const Wide product = static_cast<Wide>(Next()) * bound;
    if (static_cast<uint64_t>(product) >= uneven) return static_cast<uint64_t>(product >> 64);
  }
}

}  // namespace muster
