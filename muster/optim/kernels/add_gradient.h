// Adding gradients up: for the mean of a synchronous round, or of rows that come more than once in a batch. Halves are
// summed as floats, since a sum of many would lose its small addends. A pure function; thread-safe.
#pragma once

#include "muster/base/bytes.h"
#include "muster/base/dtype.h"

namespace muster {

// sum ← sum + scale · gradient. The gradient is of `dtype`, of a floating-point type, and may lie at any address (it
// comes off the wire); the sum is of SlotDType(dtype), as many elements, and aligned.
void AddGradient(DType dtype, MutableByteSpan sum, ByteSpan gradient, double scale = 1);

}  // namespace muster
