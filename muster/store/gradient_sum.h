// Sums of gradients, as the synchronous gate collects them. Pure function; thread-safe.
#pragma once

#include "muster/base/bytes.h"
#include "muster/base/dtype.h"

namespace muster {

// sum ← sum + scale × gradient. The gradient is of `dtype` and needs no alignment, the sum is of SlotDType(dtype): a
// sum of halves is of floats.
void AddGradient(DType dtype, MutableByteSpan sum, ByteSpan gradient, double scale);

}  // namespace muster
