// Updates single rows of a large matrix, as an embedding's gradient requires: indices, and one gradient row for each.
// Reads and writes only these rows, so that the cost doesn't grow with the matrix. Pure; thread-safe as long as no two
// calls touch the same rows at once.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "muster/optim/update_rule.h"

namespace muster {

// Whether the rule has a meaning for single rows. With some a row without a gradient would move as well; of others what
// it means was never said.
bool SupportsRows(RuleKind kind);
// Those that have, for messages: "sgd, momentum, …".
std::string RulesForRows();

// The memory of a variable [rows, width] whose rows are updated.
struct RowsOfVariable {
  DType dtype = DType::kFloat32;
  int64_t width = 0;  // elements per row, at least 1
  MutableByteSpan value;
  std::span<const MutableByteSpan> slots;  // as for UpdateRule::Apply
};

// Applies `rule` to the rows `indices` (any order). `gradients` is [indices, width] of the variable's type and is only
// read. Gradients of one row are summed first, in their order (halves as floats), so that each row moves once. Adam is
// TensorFlow's LazyAdam: moments of other rows don't decay, and t is the caller's for all rows; momentum likewise.
// Weight decay applies only to the given rows.
//
// Returns InvalidArgument without changing anything: a rule without a form for rows, a type that isn't floating-point,
// an index out of range (named, with the number of rows), sizes that don't fit each other.
[[nodiscard]] absl::Status ApplyRows(const UpdateRule& rule, const RowsOfVariable& variable,
                                     std::span<const int64_t> indices, ByteSpan gradients,
                                     const UpdateRule::Step& step);

}  // namespace muster
