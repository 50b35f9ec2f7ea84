// What a variable of the model is, as every process of the cluster must agree on it: name, type, shape, what kind.
// Plain values, no thread safety needed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/base/dtype.h"
#include "muster/cluster/placement/row_table.h"

namespace muster {

// The numbers are written to the wire and to the arena: never renumber.
enum class VariableKind : uint8_t {
  kTrainable = 1,  // updated by the rule from gradients
  kFrozen = 2,     // initialised by the chief, never updated (requires_grad = false)
  kBuffer = 3,     // worker-local state such as batch-norm statistics; the chief publishes its own with each commit
  kRows = 4,       // a table of rows, [rows, …]: looked up and updated by the rule row by row, never moved whole
};

struct VariableSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;  // [] is a scalar
  VariableKind kind = VariableKind::kTrainable;
  std::string device;   // device string of the scope it was created in; empty: placed by the strategy
  RowTable table = {};  // kRows

  int64_t elements() const {
    int64_t count = 1;
    for (int64_t extent : shape) count *= extent;
    return count;
  }
  // … of a row: what one index of the first axis stands for.
  int64_t row_elements() const {
    int64_t count = 1;
    for (size_t axis = 1; axis < shape.size(); ++axis) count *= shape[axis];
    return count;
  }
  // It has a rule, with slots.
  bool updated() const { return kind == VariableKind::kTrainable || kind == VariableKind::kRows; }
  int64_t bytes() const { return elements() * static_cast<int64_t>(DTypeSize(dtype)); }

  bool operator==(const VariableSpec&) const = default;
};

}  // namespace muster
