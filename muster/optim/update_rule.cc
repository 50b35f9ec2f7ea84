#include "muster/optim/update_rule.h"

#include "muster/base/status_macros.h"
#include "muster/optim/rule_descriptor.h"

namespace muster {

DType SlotDType(DType variable) {
  const bool half = variable == DType::kFloat16 || variable == DType::kBFloat16;
  return half ? DType::kFloat32 : variable;
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeUpdateRule(const RuleSpec& spec) {
  RETURN_IF_ERROR(CheckRule(spec));
  return FindRule(spec.kind)->make(spec);
}

}  // namespace muster
