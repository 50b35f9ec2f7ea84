// Elements of a checkpoint as numbers, whatever their type: for showing and comparing values, not for computing with
// them. Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "muster/base/bytes.h"
#include "muster/base/dtype.h"

namespace muster {

// Converts the bits of an IEEE 754 binary16 or a bfloat16. Exact.
float HalfToFloat(uint16_t bits);
float BFloat16ToFloat(uint16_t bits);

// `into` has one place for each element of `bytes`. Exact, except for int64 beyond 2^53; bool is 0 or 1.
void ElementsToDoubles(DType dtype, ByteSpan bytes, std::span<double> into);

}  // namespace muster
