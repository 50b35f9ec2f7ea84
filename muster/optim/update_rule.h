// Update rules over plain memory, with named slots. A rule is stateless and thread-safe: the caller owns variable,
// slots and step counter (a stripe of the store, or a local parameter).
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

// State per element that a rule keeps beside a variable: of the same shape, of SlotDType, initially `initial_value`
// everywhere.
struct SlotSpec {
  std::string name;  // "momentum", "adam_m", "adam_v": part of the checkpoint's tensor names
  double initial_value = 0;
};

// Returns the type of a variable's slots: its own, but float32 for the half types. Values in a slot are often too small
// for a half (Adam's second moment of a gradient of 1e-4 is 1e-11, the smallest float16 is 6e-8).
DType SlotDType(DType variable);

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  virtual RuleKind kind() const = 0;
  virtual const std::vector<SlotSpec>& slots() const = 0;

  struct Step {
    double learning_rate = 0;  // for this update, after the schedule
    uint64_t t = 1;            // number of this update of this stripe, from 1 (Adam's t)
    // The rule sees each element of the gradient times gradient_scale, then limited to ± clip_value (clip.h). A NaN
    // stays a NaN.
    double gradient_scale = 1;
    double clip_value = std::numeric_limits<double>::infinity();
  };

  // value ← rule(value, slots, gradient). Value and gradient have the same number of elements of `dtype`, a type that
  // CheckRuleFor accepts; the slots have as many of SlotDType(dtype), in the order of slots(). `gradient` is only read.
  // Spans must not overlap and may be unaligned. Halves are computed in float and rounded once; whole numbers wrap
  // around and are neither scaled nor clipped.
  virtual void Apply(DType dtype, MutableByteSpan value, std::span<const MutableByteSpan> slots, ByteSpan gradient,
                     const Step& step) const = 0;

  // Some rows of a matrix [rows of the variable, width], and their gradients.
  struct RowUpdates {
    size_t width = 0;
    std::span<const int64_t> rows;                // distinct, within the variable
    std::span<const std::byte* const> gradients;  // for each row: `width` elements of SlotDType(dtype), at any address
  };

  // Applies the rule to those rows only; value and slots are the whole variable's. The caller must have summed and
  // checked already, as ApplyRows (sparse_rows.h) does. Floating-point types only.
  virtual void ApplyToRows(DType dtype, MutableByteSpan value, std::span<const MutableByteSpan> slots,
                           const RowUpdates& updates, const Step& step) const = 0;
};

// InvalidArgument as in CheckRule.
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeUpdateRule(const RuleSpec& spec);

}  // namespace muster
