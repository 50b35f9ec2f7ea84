// Adds up the ranks' contributions in the order of the ranks: ((r0 + r1) + r2) + …. Vectorised; every machine gets the
// same bits. Pure function.
#pragma once

#include <cstddef>
#include <span>

#include "muster/base/dtype.h"
#include "muster/collective/collective.h"

namespace muster {

// `contributions` has one entry per rank: `elements` of `dtype` (floating-point) each, at any address. The result goes
// to `first` and `second`, unless null. Either may be one of the contributions. Halves are added up as floats and
// rounded once.
void SumOfRanks(DType dtype, Reduction reduction, std::span<const std::byte* const> contributions, size_t elements,
                std::byte* first, std::byte* second);

// elements ← elements / by. float32 or float64.
void DivideBy(DType dtype, int by, std::byte* elements, size_t count);

}  // namespace muster
