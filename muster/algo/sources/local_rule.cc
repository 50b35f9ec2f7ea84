#include "muster/algo/sources/local_rule.h"

#include "muster/base/check.h"
#include "muster/base/status_macros.h"
#include "muster/optim/kernels/clip.h"
#include "muster/optim/kernels/value_math.h"
#include "muster/optim/schedule.h"
#include "muster/store/client/gradient_policy.h"

namespace muster {

LocalRule::LocalRule(const std::vector<VariableSpec>& variables, const OptimizerSpec& rule)
    : model_{variables, {}, rule, {}}, variables_(variables.size()) {
  for (size_t i = 0; i < variables.size(); ++i) {
    if (variables[i].kind != VariableKind::kTrainable) continue;
    auto made = MakeUpdateRule(rule.RuleFor(variables[i].name));
    MUSTER_CHECK(made.ok());
    variables_[i].rule = *std::move(made);
  }
}

void LocalRule::MakeSlots(const VariableSpec& spec, Variable& variable) {
  const DType dtype = SlotDType(spec.dtype);
  for (const SlotSpec& slot : variable.rule->slots()) {
    std::vector<std::byte>& bytes = variable.slots.emplace_back(spec.elements() * DTypeSize(dtype));
    SetAll(dtype, bytes, slot.initial_value);
  }
  for (std::vector<std::byte>& slot : variable.slots) variable.slot_spans.emplace_back(slot);
}

absl::StatusOr<bool> LocalRule::Apply(GradientSource& source, std::span<const MutableByteSpan> values,
                                      std::span<const MutableByteSpan> moves, int64_t global_step) {
  const auto gradient = [&source](size_t i) { return source.gradient(i); };
  RETURN_IF_ERROR(CheckGradients(model_, gradient));
  FindSquares(model_, gradient, nullptr, squares_);
  ASSIGN_OR_RETURN(const bool drop, DropsNonFinite(model_, squares_, "this worker", global_step));
  if (drop) return false;
  FindClipScales(model_, squares_, scales_);
  for (size_t i = 0; i < variables_.size(); ++i) {
    Variable& variable = variables_[i];
    const ByteSpan bytes = variable.rule ? source.gradient(i) : ByteSpan();
    if (bytes.empty()) continue;
    const VariableSpec& spec = model_.variables[i];
    if (variable.t++ == 0) MakeSlots(spec, variable);
    const RuleSpec& rule = model_.optimizer.RuleFor(spec.name);
    const UpdateRule::Step step = {.learning_rate = LearningRateAt(rule.schedule, rule.learning_rate, global_step),
                                   .t = variable.t,
                                   .gradient_scale = scales_.empty() ? 1 : scales_[i],
                                   .clip_value = ClipValue(rule.clip)};
    variable.rule->Apply(spec.dtype, values[i], variable.slot_spans, bytes, step);
    if (!moves.empty()) variable.rule->Apply(spec.dtype, moves[i], {}, bytes, step);
  }
  return true;
}

}  // namespace muster
