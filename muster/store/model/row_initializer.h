// The initial values of a table of rows, made by the ps that holds the rows. A pure function of the seed and the rows'
// numbers in the whole table, so that it is the same table on any number of ps and with any partition.
#pragma once

#include <cstdint>

#include "muster/base/bytes.h"
#include "muster/cluster/placement/placement.h"
#include "muster/cluster/placement/variable_spec.h"

namespace muster {

// Writes elements of `slice` from `first` on, as many as `into` holds of the variable's type.
void InitializeRows(const VariableSpec& variable, const PlacedSlice& slice, int64_t first, MutableByteSpan into);

}  // namespace muster
