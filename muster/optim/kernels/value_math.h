// Sums and differences of one variable's values, which algorithms form from a worker's own values and the global ones.
// All spans of a call have the same number of elements of `dtype`, a floating-point type, and don't overlap; halves are
// computed as floats and rounded once. Pure functions; thread-safe.
#pragma once

#include "muster/base/bytes.h"
#include "muster/base/dtype.h"

namespace muster {

// into ← scale · (a − b)
void SetDifference(DType dtype, MutableByteSpan into, ByteSpan a, ByteSpan b, double scale = 1);

// into ← into + scale · a
void AddScaled(DType dtype, MutableByteSpan into, ByteSpan a, double scale);

// into ← value, for every element
void SetAll(DType dtype, MutableByteSpan into, double value);

// into ← scale · into
void ScaleBy(DType dtype, MutableByteSpan into, double scale);

}  // namespace muster
