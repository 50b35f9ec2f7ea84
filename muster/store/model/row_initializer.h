// What a table of rows begins with, made by the ps that holds the rows. A pure function of the seed and of the rows'
// numbers in the whole table, so that it is the same table on any number of ps and with any partition.
#pragma once

#include <cstdint>

#include "muster/base/bytes.h"
#include "muster/cluster/placement/placement.h"
#include "muster/cluster/placement/variable_spec.h"

namespace muster {

// Element e of `slice`, from e = `first` on, as many as `into` has of the variable's type.
void InitializeRows(const VariableSpec& variable, const PlacedSlice& slice, int64_t first, MutableByteSpan into);

}  // namespace muster
