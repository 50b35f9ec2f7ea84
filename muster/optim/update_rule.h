// Update rules over plain memory, with named slots. A rule is stateless and thread-safe: variable, slots and step
// counter belong to the caller (a stripe of the store, or a local parameter).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/bytes.h"
#include "muster/base/dtype.h"

namespace muster {

// The numbers are written to the wire and to the arena: never renumber.
enum class RuleKind : uint8_t { kSgd = 1, kMomentum = 2, kAdam = 3 };

// A rule and its hyperparameters; what the chief tells the ps.
struct RuleSpec {
  RuleKind kind = RuleKind::kSgd;
  double learning_rate = 0.01;
  double momentum = 0.9;  // kMomentum
  bool nesterov = false;  // kMomentum
  double beta1 = 0.9;     // kAdam
  double beta2 = 0.999;   // kAdam
  double epsilon = 1e-8;  // kAdam

  bool operator==(const RuleSpec&) const = default;
};

// "sgd", "momentum", "adam".
std::string RuleName(RuleKind kind);
absl::StatusOr<RuleKind> ParseRule(std::string_view name);

// Per-element state that a rule keeps beside a variable: same type and shape, starts as `initial_value` everywhere.
struct SlotSpec {
  std::string name;  // "momentum", "adam_m", "adam_v": part of the checkpoint's tensor names
  double initial_value = 0;
};

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  virtual const std::vector<SlotSpec>& slots() const = 0;

  struct Step {
    double learning_rate = 0;  // for this update: schedules have been evaluated
    uint64_t t = 1;            // number of this update of this stripe, from 1 (Adam's t)
  };

  // value ← rule(value, slots, gradient). All spans hold the same number of elements of `dtype` (f32 or f64); slots in
  // the order of slots(). `gradient` is only read. Spans must not overlap.
  virtual void Apply(DType dtype, MutableByteSpan value, std::span<const MutableByteSpan> slots, ByteSpan gradient,
                     const Step& step) const = 0;
};

// InvalidArgument names the hyperparameter, its value and what is accepted (learning_rate ≥ 0 and finite, betas in [0,
// 1), …).
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeUpdateRule(const RuleSpec& spec);

}  // namespace muster
