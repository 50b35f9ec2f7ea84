#include "muster/optim/update_rule.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/status_macros.h"
#include "muster/optim/rules.h"

namespace muster {
namespace {

absl::Status Refuse(RuleKind kind, const char* name, double value, const char* accepted) {
  return absl::InvalidArgumentError(
      absl::StrCat("rule ", RuleName(kind), ": ", name, " is ", value, "; accepted: ", accepted));
}

absl::Status CheckFraction(RuleKind kind, const char* name, double value) {
  if (value >= 0 && value < 1) return absl::OkStatus();
  return Refuse(kind, name, value, "at least 0 and below 1");
}

absl::Status CheckRule(const RuleSpec& spec) {
  if (!std::isfinite(spec.learning_rate) || spec.learning_rate < 0)
    return Refuse(spec.kind, "learning_rate", spec.learning_rate, "a finite number, at least 0");
  if (spec.kind == RuleKind::kMomentum) {
    RETURN_IF_ERROR(CheckFraction(spec.kind, "momentum", spec.momentum));
    if (spec.nesterov && spec.momentum == 0)
      return Refuse(spec.kind, "momentum", spec.momentum, "above 0 and below 1 where nesterov is on");
  }
  if (spec.kind == RuleKind::kAdam) {
    RETURN_IF_ERROR(CheckFraction(spec.kind, "beta1", spec.beta1));
    RETURN_IF_ERROR(CheckFraction(spec.kind, "beta2", spec.beta2));
    // Below the smallest float an epsilon is 0 for float variables, and an element without gradient becomes 0 / 0.
    if (!std::isfinite(spec.epsilon) || spec.epsilon < std::numeric_limits<float>::min())
      return Refuse(spec.kind, "epsilon", spec.epsilon, "a finite number, at least 1.2e-38");
  }
  return absl::OkStatus();
}

}  // namespace

std::string RuleName(RuleKind kind) {
  switch (kind) {
    case RuleKind::kSgd:
      return "sgd";
    case RuleKind::kMomentum:
      return "momentum";
    case RuleKind::kAdam:
      return "adam";
  }
  return absl::StrCat("rule ", static_cast<int>(kind));
}

absl::StatusOr<RuleKind> ParseRule(std::string_view name) {
  for (RuleKind kind : {RuleKind::kSgd, RuleKind::kMomentum, RuleKind::kAdam})
    if (RuleName(kind) == name) return kind;
  return absl::InvalidArgumentError(absl::StrCat("unknown update rule '", absl::string_view(name.data(), name.size()),
                                                 "'; accepted: sgd, momentum, adam"));
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeUpdateRule(const RuleSpec& spec) {
  RETURN_IF_ERROR(CheckRule(spec));
  switch (spec.kind) {
    case RuleKind::kSgd:
      return MakeSgd();
    case RuleKind::kMomentum:
      return MakeMomentum(spec.momentum, spec.nesterov);
    case RuleKind::kAdam:
      return MakeAdam(spec.beta1, spec.beta2, spec.epsilon);
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown update rule number ", static_cast<int>(spec.kind),
                                                 "; accepted: 1 (sgd), 2 (momentum), 3 (adam)"));
}

}  // namespace muster
