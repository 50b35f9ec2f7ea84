// Sums and differences of values of one variable, as algorithms make them of a worker's own and the global ones. All
// spans of a call hold as many elements of `dtype`, a floating-point type, and don't overlap; halves are computed as
// floats and rounded once. Pure functions; thread-safe.
#pragma once

#include "muster/base/bytes.h"
#include "muster/base/dtype.h"

namespace muster {

// into ← scale · (a − b)
void SetDifference(DType dtype, MutableByteSpan into, ByteSpan a, ByteSpan b, double scale = 1);

// into ← into + scale · a
void AddScaled(DType dtype, MutableByteSpan into, ByteSpan a, double scale);

// into ← value everywhere
void SetAll(DType dtype, MutableByteSpan into, double value);

// into ← scale · into
void ScaleBy(DType dtype, MutableByteSpan into, double scale);

}  // namespace muster
