// Puts examples on top of each other to make a batch: every array of the batch has the examples' shape behind a first
// dimension of rows. What batch.cc and readers without a quicker way use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "muster/data/example.h"

namespace muster {

// Room for `rows` examples like `row`; the memory of `into` is used again.
void PrepareStack(const Example& row, size_t rows, Example& into);

// Copies `row` to place `at` of a batch prepared for examples like it. InvalidArgument naming the feature whose type or
// shape isn't that of the batch's first row, or that is in one of them only.
[[nodiscard]] absl::Status StackRow(const Example& row, size_t at, Example& into);

// Keeps the first `rows` places.
void CutStack(size_t rows, Example& into);

// An array for `rows` values of that type and shape.
void ResetRows(Array& into, DType dtype, std::span<const int64_t> row_shape, size_t rows);

}  // namespace muster
