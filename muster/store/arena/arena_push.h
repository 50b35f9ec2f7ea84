// A push as the arena sees it. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "muster/base/bytes.h"
#include "muster/base/dtype.h"
#include "muster/optim/gradient_change.h"
#include "muster/store/model/wire_precision.h"

namespace muster {

// Whose change it is, and what it was computed from.
struct ArenaPush {
  int client = 0;           // whose undo slot and number it is; one process at a time
  uint64_t sequence = 0;    // a stripe that has seen this number already is left as it is
  uint64_t generation = 0;  // of the values that it was computed from
  // Of the rule's step: the rate by the schedule, and what the gradient is multiplied by (clipping by norms).
  double learning_rate = 0;
  double gradient_scale = 1;
  // The slice's values that the gradient was computed from, if they came along, and what becomes of it.
  ByteSpan computed_from = {};
  const GradientChange* change = nullptr;
  // In which precision the gradient has come, and what is pulled is to go.
  WirePrecision sent_as = WirePrecision::kFull;
  WirePrecision pulled_as = WirePrecision::kFull;

  // With `change`: the gradient of the elements from byte `offset` of the slice on, whose values are `value` now, as
  // the rule is to see it (scaled already). In `room`, which is as long.
  ByteSpan Changed(DType dtype, size_t offset, ByteSpan value, ByteSpan gradient, MutableByteSpan room) const;
};

}  // namespace muster
