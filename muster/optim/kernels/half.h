// The two half types, float16 and bfloat16, as the rules compute with them: block by block into floats that stay in
// the first cache, and back, rounded to nearest even. Every machine gets the same bits, with the processor's own
// float16 instructions or without. Pure functions; thread-safe.
#pragma once

#include <array>
#include <cstddef>

#include "muster/base/dtype.h"

namespace muster {

constexpr size_t kHalfBytes = 2;

// A block of a variable as floats: 2 KiB, so that those of variable and gradient take a tenth of a first cache.
constexpr size_t kHalfBlock = 512;
using HalfBlock = std::array<float, kHalfBlock>;

// `count` elements of `dtype` (kFloat16 or kBFloat16) at `halves`, at any address.
void FloatsFromHalves(DType dtype, const std::byte* halves, float* floats, size_t count);
void HalvesFromFloats(DType dtype, const float* floats, std::byte* halves, size_t count);

// Without the processor's own instructions, whether it has them or not: what tests compare with.
void PortableFloatsFromHalves(DType dtype, const std::byte* halves, float* floats, size_t count);
void PortableHalvesFromFloats(DType dtype, const float* floats, std::byte* halves, size_t count);

}  // namespace muster
