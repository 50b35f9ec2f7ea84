// Updates of single rows of a large matrix, as an embedding's gradient brings them: indices and one gradient row each.
// Only the rows named are read or written, so that the cost doesn't grow with the matrix. Pure; thread-safe as long as
// no two calls touch the same rows at once.
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

// Where the rows of a variable [rows, width] are updated.
struct RowsOfVariable {
  DType dtype = DType::kFloat32;
  int64_t width = 0;  // elements a row, at least 1
  MutableByteSpan value;
  std::span<const MutableByteSpan> slots;  // as for UpdateRule::Apply
};

// Applies `rule` to the rows `indices` (any order). `gradients` is [indices, width] of the variable's type, and only
// read. Gradients of one row are summed first, in the order in which they come (halves as floats), so that each row
// moves once. Adam is TensorFlow's LazyAdam: moments of rows that aren't named don't decay, and t is the caller's for
// all rows; so with momentum. Weight decay is that of the rows named.
//
// InvalidArgument, and nothing has been changed: a rule without this form, a type that isn't floating point, an index
// out of range (named, with the number of rows), sizes that don't fit each other.
[[nodiscard]] absl::Status ApplyRows(const UpdateRule& rule, const RowsOfVariable& variable,
                                     std::span<const int64_t> indices, ByteSpan gradients,
                                     const UpdateRule::Step& step);

}  // namespace muster
