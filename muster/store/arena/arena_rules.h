// The update rule of each slice of a model, found once by its variable's name instead of at every update. Plain values.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/optim/update_rule.h"
#include "muster/store/model/model.h"

namespace muster {

struct SliceRule {
  std::unique_ptr<UpdateRule> rule;  // null: the slice isn't trainable
  RuleSpec spec;                     // meaningless if `rule` is null
};

// One per slice. InvalidArgument as from MakeUpdateRule.
absl::StatusOr<std::vector<SliceRule>> MakeSliceRules(const StoreModel& model);

}  // namespace muster
