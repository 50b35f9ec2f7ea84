// Sums gradients: for the mean of a synchronous round, or of rows that occur more than once in a batch. Halves are
// summed as floats, because a sum of many would lose its small addends. A pure function; thread-safe.
#pragma once

#include "muster/base/bytes.h"
#include "muster/base/dtype.h"

namespace muster {

// sum ← sum + scale · gradient. `dtype` is the gradient's, a floating-point type; the gradient may lie at any address
// (it comes off the wire). The sum has as many elements, of SlotDType(dtype), and is aligned.
void AddGradient(DType dtype, MutableByteSpan sum, ByteSpan gradient, double scale = 1);

}  // namespace muster
