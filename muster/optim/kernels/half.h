// Converts the two half types, float16 and bfloat16, for the rules: block by block into floats that stay in the
// first-level cache, and back, rounded to nearest even. Every machine gets the same bits, with or without the
// processor's own float16 instructions. Pure functions; thread-safe.
#pragma once

#include <array>
#include <cstddef>

#include "muster/base/dtype.h"

namespace muster {

constexpr size_t kHalfBytes = 2;

// A block of a variable as floats: 2 KiB, so that the blocks of variable and gradient take a tenth of a first-level
// cache.
constexpr size_t kHalfBlock = 512;
using HalfBlock = std::array<float, kHalfBlock>;

// Converts `count` elements of `dtype` (kFloat16 or kBFloat16) at `halves`, which may be any address.
void FloatsFromHalves(DType dtype, const std::byte* halves, float* floats, size_t count);
void HalvesFromFloats(DType dtype, const float* floats, std::byte* halves, size_t count);

// These never use the processor's own instructions: tests compare with them.
void PortableFloatsFromHalves(DType dtype, const std::byte* halves, float* floats, size_t count);
void PortableHalvesFromFloats(DType dtype, const float* floats, std::byte* halves, size_t count);

}  // namespace muster
