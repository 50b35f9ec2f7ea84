// Update rules over plain memory, with named slots. A rule is stateless and thread-safe: variable, slots and step
// counter belong to the caller (a stripe of the store, or a local parameter).
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/bytes.h"
#include "muster/base/dtype.h"
#include "muster/optim/rule_spec.h"

namespace muster {

// Per-element state that a rule keeps beside a variable: same shape, of SlotDType, starts as `initial_value`
// everywhere.
struct SlotSpec {
  std::string name;  // "momentum", "adam_m", "adam_v": part of the checkpoint's tensor names
  double initial_value = 0;
};

// The type of the slots of a variable: its own, but float32 beside the half types. What a slot adds up is often smaller
// than a half can tell from nothing (Adam's second moment of a gradient of 1e-4 is 1e-11, the smallest float16 6e-8).
DType SlotDType(DType variable);

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  virtual RuleKind kind() const = 0;
  virtual const std::vector<SlotSpec>& slots() const = 0;

  struct Step {
    double learning_rate = 0;  // for this update: schedules have been evaluated
    uint64_t t = 1;            // number of this update of this stripe, from 1 (Adam's t)
    // The rule sees each element of the gradient times gradient_scale, then limited to ± clip_value (clip.h). A NaN
    // stays one.
    double gradient_scale = 1;
    double clip_value = std::numeric_limits<double>::infinity();
  };

  // value ← rule(value, slots, gradient). Value and gradient hold the same number of elements of `dtype`, one that
  // CheckRuleFor accepts; slots as many of SlotDType(dtype), in the order of slots(). `gradient` is only read. Spans
  // must not overlap, and needn't be aligned. Halves are computed in float and rounded once; whole numbers wrap around
  // and are neither scaled nor clipped.
  virtual void Apply(DType dtype, MutableByteSpan value, std::span<const MutableByteSpan> slots, ByteSpan gradient,
                     const Step& step) const = 0;

  // Some rows of a matrix [rows of the variable, width] and their gradients.
  struct RowUpdates {
    size_t width = 0;
    std::span<const int64_t> rows;                // distinct, within the variable
    std::span<const std::byte* const> gradients;  // of each: `width` elements of SlotDType(dtype), at any address
  };

  // Apply for those rows alone; value and slots are the whole variable's. For callers who have summed and checked
  // already, as ApplyRows (sparse_rows.h) does. Floating-point types only.
  virtual void ApplyToRows(DType dtype, MutableByteSpan value, std::span<const MutableByteSpan> slots,
                           const RowUpdates& updates, const Step& step) const = 0;
};

// InvalidArgument as CheckRule says.
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeUpdateRule(const RuleSpec& spec);

}  // namespace muster
