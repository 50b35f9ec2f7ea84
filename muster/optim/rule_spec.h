// What a training program says about an update rule: which one, its hyperparameters, how the gradient is clipped and
// how the learning rate moves. A plain value that the chief sends to the ps; the files of rules/ have the formulas,
// rule_options.h the ways to write one. No thread safety needed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "muster/base/dtype.h"
#include "muster/optim/kernels/clip.h"
#include "muster/optim/rule_table.h"
#include "muster/optim/schedule.h"

namespace muster {

// rule_table.h has the names and the numbers.
enum class RuleKind : uint8_t {
#define RULE(Name, number) k##Name = number,
  MUSTER_UPDATE_RULES(RULE)
#undef RULE
};

// A rule and its hyperparameters. Only those that the rule uses are checked. The defaults here are the same for all
// rules; rule_options.h has each rule's defaults from the library whose semantics it keeps.
struct RuleSpec {
  RuleKind kind = RuleKind::kSgd;
  double learning_rate = 0.01;        // all but kAdd; the schedule's base
  double momentum = 0.9;              // kMomentum, kRmsProp
  bool nesterov = false;              // kMomentum
  double beta1 = 0.9;                 // kAdam, kAdamW
  double beta2 = 0.999;               // kAdam, kAdamW
  double epsilon = 1e-8;              // kAdam, kAdamW, kAdagrad, kRmsProp, kAdadelta
  double weight_decay = 0;            // all but kAdd: g ← g + weight_decay · p first; kAdamW: decoupled
  double initial_accumulator = 0;     // kAdagrad, kFtrl
  double learning_rate_decay = 0;     // kAdagrad
  double rho = 0.9;                   // kRmsProp (torch's alpha), kAdadelta
  bool centered = false;              // kRmsProp
  double learning_rate_power = -0.5;  // kFtrl
  double l1 = 0;                      // kFtrl
  double l2 = 0;                      // kFtrl
  ClipSpec clip = {};                 // applied before weight decay
  ScheduleSpec schedule = {};         // all but kAdd

  bool operator==(const RuleSpec&) const = default;
};

// "sgd", "momentum", "adam" …
std::string RuleName(RuleKind kind);
absl::StatusOr<RuleKind> ParseRule(std::string_view name);

// InvalidArgument names the hyperparameter, its value and what is accepted (learning_rate ≥ 0 and finite, betas in [0,
// 1), …).
[[nodiscard]] absl::Status CheckRule(const RuleSpec& spec);

// InvalidArgument if the rule can't update variables of this type: whole numbers are only added to, and not clipped.
[[nodiscard]] absl::Status CheckRuleFor(const RuleSpec& spec, DType dtype);

// Returns the values that the rule uses, by name, as a checkpoint's manifest records them: flags and kinds as numbers;
// weight decay, clipping and schedule only if set.
std::map<std::string, double> Hyperparameters(const RuleSpec& spec);

}  // namespace muster
