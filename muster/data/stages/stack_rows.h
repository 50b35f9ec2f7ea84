// Stacks examples to make a batch: every array of the batch has a first dimension of rows and then the examples' shape.
// Used by batch.cc and by readers without a quicker way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "muster/data/example.h"

namespace muster {

// Makes room for `rows` examples like `row`; reuses the memory of `into`.
void PrepareStack(const Example& row, size_t rows, Example& into);

// Copies `row` to place `at` of a batch prepared for examples like it. InvalidArgument, naming the feature: its type or
// shape differs from the batch's first row, or only one of the two rows has it.
[[nodiscard]] absl::Status StackRow(const Example& row, size_t at, Example& into);

// Keeps the first `rows` places.
void CutStack(size_t rows, Example& into);

// Makes `into` an array for `rows` values of that type and shape.
void ResetRows(Array& into, DType dtype, std::span<const int64_t> row_shape, size_t rows);

}  // namespace muster
