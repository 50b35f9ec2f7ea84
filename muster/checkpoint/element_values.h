// Elements of a checkpoint as numbers, whatever their type: for what looks at values and doesn't compute with them.
// Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "muster/base/bytes.h"
#include "muster/base/dtype.h"

namespace muster {

// IEEE 754 binary16 and bfloat16, given as their bits. Exact.
float HalfToFloat(uint16_t bits);
float BFloat16ToFloat(uint16_t bits);

// `into` has one place for each element of `bytes`. Exact but for int64 beyond 2^53; bool is 0 or 1.
void ElementsToDoubles(DType dtype, ByteSpan bytes, std::span<double> into);

}  // namespace muster
