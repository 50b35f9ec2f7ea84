#include "muster/optim/rule_spec.h"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/absl_view.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

constexpr std::array kRules = {RuleKind::kSgd,      RuleKind::kMomentum, RuleKind::kAdam,
                               RuleKind::kAdagrad,  RuleKind::kAdamW,    RuleKind::kRmsProp,
                               RuleKind::kAdadelta, RuleKind::kFtrl,     RuleKind::kAdd};

std::string RuleNames() {
  return absl::StrJoin(kRules, ", ", [](std::string* out, RuleKind kind) { out->append(RuleName(kind)); });
}

// A rule's hyperparameters beside the learning rate and weight decay, in the order in which they are checked.
enum class Accepts { kFraction, kPositive, kNotNegative, kNotPositive, kFlag };
struct Hyperparameter {
  const char* name;
  double value;
  Accepts accepts;
};
std::vector<Hyperparameter> HyperparametersOf(const RuleSpec& spec) {
  const Hyperparameter momentum = {"momentum", spec.momentum, Accepts::kFraction};
  const Hyperparameter epsilon = {"epsilon", spec.epsilon, Accepts::kPositive};
  const Hyperparameter rho = {"rho", spec.rho, Accepts::kFraction};
  const Hyperparameter accumulator = {"initial_accumulator", spec.initial_accumulator, Accepts::kNotNegative};
  switch (spec.kind) {
    case RuleKind::kMomentum:
      return {momentum, {"nesterov", spec.nesterov ? 1.0 : 0.0, Accepts::kFlag}};
    case RuleKind::kAdam:
    case RuleKind::kAdamW:
      return {{"beta1", spec.beta1, Accepts::kFraction}, {"beta2", spec.beta2, Accepts::kFraction}, epsilon};
    case RuleKind::kAdagrad:
      return {{"learning_rate_decay", spec.learning_rate_decay, Accepts::kNotNegative}, accumulator, epsilon};
    case RuleKind::kRmsProp:
      return {rho, momentum, epsilon, {"centered", spec.centered ? 1.0 : 0.0, Accepts::kFlag}};
    case RuleKind::kAdadelta:
      return {rho, epsilon};
    case RuleKind::kFtrl:
      return {{"learning_rate_power", spec.learning_rate_power, Accepts::kNotPositive},
              accumulator,
              {"l1", spec.l1, Accepts::kNotNegative},
              {"l2", spec.l2, Accepts::kNotNegative}};
    case RuleKind::kSgd:
    case RuleKind::kAdd:
      break;
  }
  return {};
}

absl::Status Refuse(RuleKind kind, const char* name, double value, const char* accepted) {
  return absl::InvalidArgumentError(
      absl::StrCat("rule ", RuleName(kind), ": ", name, " is ", value, "; accepted: ", accepted));
}

absl::Status Check(RuleKind kind, const Hyperparameter& h) {
  const bool finite = std::isfinite(h.value);
  switch (h.accepts) {
    case Accepts::kFraction:
      if (h.value >= 0 && h.value < 1) break;
      return Refuse(kind, h.name, h.value, "at least 0 and below 1");
    case Accepts::kPositive:
      // A smaller epsilon is 0 for float variables, and an element without gradient becomes 0 / 0.
      if (finite && h.value >= std::numeric_limits<float>::min()) break;
      return Refuse(kind, h.name, h.value, "a finite number, at least 1.2e-38");
    case Accepts::kNotNegative:
      if (finite && h.value >= 0) break;
      return Refuse(kind, h.name, h.value, "a finite number, at least 0");
    case Accepts::kNotPositive:
      if (finite && h.value <= 0) break;
      return Refuse(kind, h.name, h.value, "a finite number, at most 0");
    case Accepts::kFlag:
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
  switch (kind) {
    case RuleKind::kSgd:
      return "sgd";
    case RuleKind::kMomentum:
      return "momentum";
    case RuleKind::kAdam:
      return "adam";
    case RuleKind::kAdagrad:
      return "adagrad";
    case RuleKind::kAdamW:
      return "adamw";
    case RuleKind::kRmsProp:
      return "rmsprop";
    case RuleKind::kAdadelta:
      return "adadelta";
    case RuleKind::kFtrl:
      return "ftrl";
    case RuleKind::kAdd:
      return "add";
  }
  return absl::StrCat("rule ", static_cast<int>(kind));
}

absl::StatusOr<RuleKind> ParseRule(std::string_view name) {
  for (const RuleKind kind : kRules)
    if (RuleName(kind) == name) return kind;
  return absl::InvalidArgumentError(
      absl::StrCat("unknown update rule '", AbslView(name), "'; accepted: ", RuleNames()));
}

absl::Status CheckRule(const RuleSpec& spec) {
  if (spec.kind < RuleKind::kSgd || spec.kind > RuleKind::kAdd)
    return absl::InvalidArgumentError(absl::StrCat("unknown update rule number ", static_cast<int>(spec.kind),
                                                   "; accepted: 1 to ", kRules.size(), " (", RuleNames(), ")"));
  RETURN_IF_ERROR(ForRule(spec.kind, CheckClip(spec.clip)));
  if (spec.kind == RuleKind::kAdd) return absl::OkStatus();
  RETURN_IF_ERROR(Check(spec.kind, {"learning_rate", spec.learning_rate, Accepts::kNotNegative}));
  RETURN_IF_ERROR(ForRule(spec.kind, CheckSchedule(spec.schedule)));
  RETURN_IF_ERROR(Check(spec.kind, {"weight_decay", spec.weight_decay, Accepts::kNotNegative}));
  for (const Hyperparameter& hyperparameter : HyperparametersOf(spec))
    RETURN_IF_ERROR(Check(spec.kind, hyperparameter));
  if (spec.kind == RuleKind::kMomentum && spec.nesterov && spec.momentum == 0)
    return Refuse(spec.kind, "momentum", spec.momentum, "above 0 and below 1 where nesterov is on");
  return absl::OkStatus();
}

absl::Status CheckRuleFor(const RuleSpec& spec, DType dtype) {
  if (IsFloatingPoint(dtype)) return absl::OkStatus();
  const bool addable = spec.kind == RuleKind::kAdd && (dtype == DType::kInt64 || dtype == DType::kUInt8);
  if (!addable)
    return absl::InvalidArgumentError(absl::StrCat("rule ", RuleName(spec.kind), " can't update variables of type ",
                                                   DTypeName(dtype),
                                                   "; accepted: float32, float64, float16, bfloat16, and for rule add "
                                                   "also int64, uint8"));
  if (spec.clip.kind != ClipKind::kNone)
    return absl::InvalidArgumentError(absl::StrCat("rule add: what is added to variables of type ", DTypeName(dtype),
                                                   " can't be clipped (by ", ClipName(spec.clip.kind),
                                                   "); accepted: none"));
  return absl::OkStatus();
}

std::map<std::string, double> Hyperparameters(const RuleSpec& spec) {
  std::map<std::string, double> result;
  AddClip(spec.clip, result);
  if (spec.kind == RuleKind::kAdd) return result;
  result["learning_rate"] = spec.learning_rate;
  if (spec.weight_decay > 0) result["weight_decay"] = spec.weight_decay;
  for (const Hyperparameter& hyperparameter : HyperparametersOf(spec))
    result[hyperparameter.name] = hyperparameter.value;
  AddSchedule(spec.schedule, result);
  return result;
}

}  // namespace muster
