#include "muster/store/arena/arena_rules.h"

#include "muster/base/check.h"
#include "muster/base/status_macros.h"
#include "muster/store/arena/stripe_parts.h"

namespace muster {

absl::StatusOr<std::vector<SliceRule>> MakeSliceRules(const StoreModel& model) {
  std::vector<SliceRule> rules(model.slices.size());
  for (size_t i = 0; i < rules.size(); ++i) {
    if (!model.variable(model.slices[i]).updated()) continue;
    rules[i].spec = model.rule(model.slices[i]);
    ASSIGN_OR_RETURN(rules[i].rule, MakeUpdateRule(rules[i].spec));
    MUSTER_CHECK(rules[i].rule->slots().size() + 1 < StripeParts::kMaxParts);
  }
  return rules;
}

}  // namespace muster
