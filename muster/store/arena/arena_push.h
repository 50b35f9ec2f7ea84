// A push as the arena sees it. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "muster/base/bytes.h"
#include "muster/base/dtype.h"
#include "muster/optim/gradient_change.h"
#include "muster/store/model/wire_precision.h"

namespace muster {

// Which client makes a change, and what the change was computed from.
struct ArenaPush {
  int client = 0;           // owner of the undo slot and the number; one process at a time
  uint64_t sequence = 0;    // a stripe that has seen this number already is left as it is
  uint64_t generation = 0;  // of the values that the gradient was computed from
  // For the rule's step: the scheduled learning rate, and the gradient's factor (clipping by norms).
  double learning_rate = 0;
  double gradient_scale = 1;
  // The slice's values that the gradient was computed from, if they were sent, and how the gradient is changed.
  ByteSpan computed_from = {};
  const GradientChange* change = nullptr;
  // The precision at which the gradient came, and at which values are sent back.
  WirePrecision sent_as = WirePrecision::kFull;
  WirePrecision pulled_as = WirePrecision::kFull;

  // With `change`: returns the gradient that the rule sees, already scaled, for the elements from byte `offset` of the
  // slice on, whose current values are `value`. It is written to `room`, which has the same length.
  ByteSpan Changed(DType dtype, size_t offset, ByteSpan value, ByteSpan gradient, MutableByteSpan room) const;
};

}  // namespace muster
