// What all processes of the cluster must agree on about a variable of the model: name, type, shape and kind. Plain
// values, no thread safety needed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/base/dtype.h"
#include "muster/cluster/placement/row_table.h"

namespace muster {

// The numbers are part of the wire format and of the arena: never renumber.
enum class VariableKind : uint8_t {
  kTrainable = 1,  // updated by the rule from gradients
  kFrozen = 2,     // initialised by the chief, never updated (requires_grad = false)
  kBuffer = 3,     // worker-local state such as batch-norm statistics; the chief publishes its own with each commit
  kRows = 4,       // a table of rows, [rows, …]: looked up and updated row by row, never moved as a whole
};

struct VariableSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;  // [] is a scalar
  VariableKind kind = VariableKind::kTrainable;
  std::string device;   // device string of the scope it was created in; empty: placed by the strategy
  RowTable table = {};  // for kRows only

  int64_t elements() const {
    int64_t count = 1;
    for (int64_t extent : shape) count *= extent;
    return count;
  }
  // The elements of one row, that is, of one index of the first axis.
  int64_t row_elements() const {
    int64_t count = 1;
    for (size_t axis = 1; axis < shape.size(); ++axis) count *= shape[axis];
    return count;
  }
  // True for variables that the rule updates; these have slots.
  bool updated() const { return kind == VariableKind::kTrainable || kind == VariableKind::kRows; }
  int64_t bytes() const { return elements() * static_cast<int64_t>(DTypeSize(dtype)); }

  bool operator==(const VariableSpec&) const = default;
};

}  // namespace muster
