// An update rule that a worker applies to its own values, with slots of its own; they live as long as this, and no
// checkpoint has them. Used by the training thread.
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
  // `rule` is fit for `variables` (CheckOptimizer); their slots are made at the first Apply.
  LocalRule(const std::vector<VariableSpec>& variables, const OptimizerSpec& rule);

  // values[i] ← rule(values[i], the gradient that `source` has of it), for each trainable variable that has one.
  // Schedules go by `global_step`, Adam's t by how often the variable has been updated here. `moves`, if not empty: the
  // same gradient is taken off these, too, by a rule without slots (EAMSGD's velocity). False: the gradients weren't
  // finite, and nothing was changed (NonFinite::kDrop). InvalidArgument: … and training is to stop (kStop); or a
  // gradient doesn't fit its variable.
  absl::StatusOr<bool> Apply(GradientSource& source, std::span<const MutableByteSpan> values,
                             std::span<const MutableByteSpan> moves, int64_t global_step);

 private:
  struct Variable {
    std::unique_ptr<UpdateRule> rule;  // null: it isn't trainable
    std::vector<std::vector<std::byte>> slots;
    std::vector<MutableByteSpan> slot_spans;
    uint64_t t = 0;
  };
  static void MakeSlots(const VariableSpec& spec, Variable& variable);

  const ModelBinding model_;  // of variables and rule alone
  std::vector<Variable> variables_;
  std::vector<double> squares_, scales_;  // kept for their memory
};

}  // namespace muster
