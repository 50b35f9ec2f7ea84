#include "muster/optim/update_rule.h"

#include "muster/base/status_macros.h"
#include "muster/optim/rules.h"

namespace muster {

DType SlotDType(DType variable) {
  const bool half = variable == DType::kFloat16 || variable == DType::kBFloat16;
  return half ? DType::kFloat32 : variable;
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeUpdateRule(const RuleSpec& spec) {
  RETURN_IF_ERROR(CheckRule(spec));
  switch (spec.kind) {
    case RuleKind::kSgd:
      return MakeSgd(spec);
    case RuleKind::kMomentum:
      return MakeMomentum(spec);
    case RuleKind::kAdam:
    case RuleKind::kAdamW:
      return MakeAdam(spec);
    case RuleKind::kAdagrad:
      return MakeAdagrad(spec);
    case RuleKind::kRmsProp:
      return MakeRmsProp(spec);
    case RuleKind::kAdadelta:
      return MakeAdadelta(spec);
    case RuleKind::kFtrl:
      return MakeFtrl(spec);
    case RuleKind::kAdd:
      return MakeAdd(spec);
  }
  return absl::InternalError("CheckRule accepted an unknown rule");
}

}  // namespace muster
