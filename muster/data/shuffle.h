// The only source of random order in muster's input. It replaces std::shuffle and std::uniform_int_distribution, whose
// results differ between standard libraries: a seed must give the same batches on every machine and after a restart.
// Thread-safe.
//
// The generator is SplitMix64. The order is Fisher-Yates from the last place down: for i = n-1 ... 1, swap place i with
// place below(i + 1). The state starts at mix(seed) + epoch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "muster/base/split_mix64.h"

namespace muster {

// Returns the generator of an epoch's order.
SplitMix64 ShuffleGenerator(uint64_t seed, uint64_t epoch);

// Puts `places` in the order of this epoch: place i then holds what was at ShuffledOrder(places.size(), seed,
// epoch)[i].
void ShuffleInPlace(std::span<size_t> places, uint64_t seed, uint64_t epoch);

// Returns the numbers 0 ... n-1 in the order of this epoch.
std::vector<size_t> ShuffledOrder(size_t n, uint64_t seed, uint64_t epoch);

}  // namespace muster
