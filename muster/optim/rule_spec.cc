#include "muster/optim/rule_spec.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "muster/base/absl_view.h"
#include "muster/base/status_macros.h"
#include "muster/optim/rule_descriptor.h"

namespace muster {
namespace {

bool Any(const RuleDescriptor&) { return true; }

absl::Status Check(RuleKind kind, const Hyperparameter& h, double value) {
  const bool finite = std::isfinite(value);
  switch (h.accepts) {
    case Hyperparameter::Accepts::kFraction:
      if (value >= 0 && value < 1) break;
      return RefuseHyperparameter(kind, h.name, value, "at least 0 and below 1");
    case Hyperparameter::Accepts::kPositive:
      // Below the smallest float an epsilon is 0 for float variables, and an element without gradient becomes 0 / 0.
      if (finite && value >= std::numeric_limits<float>::min()) break;
      return RefuseHyperparameter(kind, h.name, value, "a finite number, at least 1.2e-38");
    case Hyperparameter::Accepts::kNotNegative:
      if (finite && value >= 0) break;
      return RefuseHyperparameter(kind, h.name, value, "a finite number, at least 0");
    case Hyperparameter::Accepts::kNotPositive:
      if (finite && value <= 0) break;
      return RefuseHyperparameter(kind, h.name, value, "a finite number, at most 0");
    case Hyperparameter::Accepts::kFlag:
      break;
  }
  return absl::OkStatus();
}

absl::Status ForRule(RuleKind kind, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("rule ", RuleName(kind), ": ", status.message()));
}

void AddClip(const ClipSpec& clip, std::map<std::string, double>& into) {
  if (clip.kind != ClipKind::kNone) into[absl::StrCat("clip_", ClipName(clip.kind))] = clip.limit;
}

void AddSchedule(const ScheduleSpec& schedule, std::map<std::string, double>& into) {
  if (schedule.warmup_steps > 0) {
    into["warmup_steps"] = static_cast<double>(schedule.warmup_steps);
    into["warmup_from"] = schedule.warmup_from;
  }
  if (schedule.kind == ScheduleKind::kConstant) return;
  into["schedule"] = static_cast<double>(schedule.kind);
  into["decay_steps"] = static_cast<double>(schedule.decay_steps);
  if (schedule.kind == ScheduleKind::kPolynomial) {
    into["end_learning_rate"] = schedule.end_learning_rate;
    into["power"] = schedule.power;
    into["cycle"] = schedule.cycle ? 1 : 0;
  } else if (schedule.kind == ScheduleKind::kCosine) {
    into["alpha"] = schedule.alpha;
  } else {
    into["decay_rate"] = schedule.decay_rate;
  }
}

}  // namespace

std::string RuleName(RuleKind kind) {
  const RuleDescriptor* rule = FindRule(kind);
  return rule != nullptr ? rule->name : absl::StrCat("rule ", static_cast<int>(kind));
}

absl::StatusOr<RuleKind> ParseRule(std::string_view name) {
  for (const RuleDescriptor* rule : AllRules())
    if (rule->name == name) return rule->kind;
  return absl::InvalidArgumentError(
      absl::StrCat("unknown update rule '", AbslView(name), "'; accepted: ", RuleNames(Any)));
}

absl::Status CheckRule(const RuleSpec& spec) {
  const RuleDescriptor* rule = FindRule(spec.kind);
  if (rule == nullptr)
    return absl::InvalidArgumentError(absl::StrCat("unknown update rule number ", static_cast<int>(spec.kind),
                                                   "; accepted: 1 to ", AllRules().size(), " (", RuleNames(Any), ")"));
  const auto check = [&](const Hyperparameter& h) { return Check(spec.kind, h, h.ValueIn(spec)); };
  RETURN_IF_ERROR(ForRule(spec.kind, CheckClip(spec.clip)));
  if (rule->has_rate) {
    RETURN_IF_ERROR(check(hyperparameters::kLearningRate));
    RETURN_IF_ERROR(ForRule(spec.kind, CheckSchedule(spec.schedule)));
    RETURN_IF_ERROR(check(hyperparameters::kWeightDecay));
  }
  for (const Hyperparameter& hyperparameter : rule->hyperparameters) RETURN_IF_ERROR(check(hyperparameter));
  return rule->check == nullptr ? absl::OkStatus() : rule->check(spec);
}

absl::Status CheckRuleFor(const RuleSpec& spec, DType dtype) {
  if (IsFloatingPoint(dtype)) return absl::OkStatus();
  const RuleDescriptor* rule = FindRule(spec.kind);
  const bool whole = dtype == DType::kInt64 || dtype == DType::kUInt8;
  if (rule == nullptr || !rule->takes_whole_numbers || !whole)
    return absl::InvalidArgumentError(
        absl::StrCat("rule ", RuleName(spec.kind), " can't update variables of type ", DTypeName(dtype),
                     "; accepted: float32, float64, float16, bfloat16, and for rule ",
                     RuleNames([](const RuleDescriptor& r) { return r.takes_whole_numbers; }), " also int64, uint8"));
  if (spec.clip.kind != ClipKind::kNone)
    return absl::InvalidArgumentError(absl::StrCat("rule ", rule->name, ": what is added to variables of type ",
                                                   DTypeName(dtype), " can't be clipped (by ", ClipName(spec.clip.kind),
                                                   "); accepted: none"));
  return absl::OkStatus();
}

std::map<std::string, double> Hyperparameters(const RuleSpec& spec) {
  std::map<std::string, double> result;
  AddClip(spec.clip, result);
  const RuleDescriptor* rule = FindRule(spec.kind);
  if (rule == nullptr || !rule->has_rate) return result;
  result["learning_rate"] = spec.learning_rate;
  if (spec.weight_decay > 0) result["weight_decay"] = spec.weight_decay;
  for (const Hyperparameter& hyperparameter : rule->hyperparameters)
    result[hyperparameter.name] = hyperparameter.ValueIn(spec);
  AddSchedule(spec.schedule, result);
  return result;
}

}  // namespace muster
