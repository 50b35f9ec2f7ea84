// Rows of a table in the memory of the code that looks them up or has their gradients. Plain values; they borrow.
#pragma once

#include <cstdint>
#include <span>

#include "muster/base/bytes.h"
#include "muster/base/dtype.h"

namespace muster {

// Rows of a table: [indices, row] in the table's type, one after the other.
struct RowsIn {
  std::span<const int64_t> indices;  // in the whole table; any order, with duplicates
  DType dtype = DType::kFloat32;
  ByteSpan values;
};
struct RowsOut {
  std::span<const int64_t> indices;
  DType dtype = DType::kFloat32;
  MutableByteSpan values;
};

}  // namespace muster
