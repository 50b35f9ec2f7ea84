// An update rule that a worker applies to its own values, with its own slots. They live as long as this object and
// aren't in any checkpoint. Used by the training thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/algo/sources/gradient_source.h"
#include "muster/optim/update_rule.h"
#include "muster/store/client/store_client.h"

namespace muster {

class LocalRule {
 public:
  // `rule` must fit `variables` (CheckOptimizer). The slots are made at the first Apply.
  LocalRule(const std::vector<VariableSpec>& variables, const OptimizerSpec& rule);

  // Computes values[i] ← rule(values[i], gradient) for each trainable variable that has a gradient in `source`.
  // Schedules use `global_step`; Adam's t counts the updates of the variable here. If `moves` isn't empty, the same
  // gradient is also subtracted from these, by a rule without slots (EAMSGD's velocity). False: the gradients weren't
  // finite and nothing was changed (NonFinite::kDrop). InvalidArgument: they weren't finite and training must stop
  // (kStop), or a gradient doesn't fit its variable.
  absl::StatusOr<bool> Apply(GradientSource& source, std::span<const MutableByteSpan> values,
                             std::span<const MutableByteSpan> moves, int64_t global_step);

 private:
  struct Variable {
    std::unique_ptr<UpdateRule> rule;  // null if it isn't trainable
    std::vector<std::vector<std::byte>> slots;
    std::vector<MutableByteSpan> slot_spans;
    uint64_t t = 0;
  };
  static void MakeSlots(const VariableSpec& spec, Variable& variable);

  const ModelBinding model_;  // variables and rule only
  std::vector<Variable> variables_;
  std::vector<double> squares_, scales_;  // members only to reuse their memory
};

}  // namespace muster
