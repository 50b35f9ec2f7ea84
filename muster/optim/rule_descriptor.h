// What a file of rules/ says about its rule. Names, checks, command lines, the manifests of checkpoints and
// MakeUpdateRule follow from it, so that a new rule is its file there and a line in rule_table.h. Constants;
// thread-safe.
#pragma once

#include <memory>
#include <span>

#include "absl/status/status.h"
#include "muster/optim/rule_spec.h"
#include "muster/optim/update_rule.h"

namespace muster {

// A member of RuleSpec: its name on command lines and in manifests, and what it may be. `number` or `flag` is null.
struct Hyperparameter {
  enum class Accepts { kFraction, kPositive, kNotNegative, kNotPositive, kFlag };

  const char* name;
  double RuleSpec::*number;
  bool RuleSpec::*flag;
  Accepts accepts;

  double ValueIn(const RuleSpec& spec) const { return flag != nullptr ? (spec.*flag ? 1 : 0) : spec.*number; }
};

namespace hyperparameters {
using enum Hyperparameter::Accepts;
inline constexpr Hyperparameter kLearningRate = {"learning_rate", &RuleSpec::learning_rate, nullptr, kNotNegative};
inline constexpr Hyperparameter kMomentum = {"momentum", &RuleSpec::momentum, nullptr, kFraction};
inline constexpr Hyperparameter kNesterov = {"nesterov", nullptr, &RuleSpec::nesterov, kFlag};
inline constexpr Hyperparameter kBeta1 = {"beta1", &RuleSpec::beta1, nullptr, kFraction};
inline constexpr Hyperparameter kBeta2 = {"beta2", &RuleSpec::beta2, nullptr, kFraction};
inline constexpr Hyperparameter kRho = {"rho", &RuleSpec::rho, nullptr, kFraction};
inline constexpr Hyperparameter kEpsilon = {"epsilon", &RuleSpec::epsilon, nullptr, kPositive};
inline constexpr Hyperparameter kCentered = {"centered", nullptr, &RuleSpec::centered, kFlag};
inline constexpr Hyperparameter kInitialAccumulator = {"initial_accumulator", &RuleSpec::initial_accumulator, nullptr,
                                                       kNotNegative};
inline constexpr Hyperparameter kLearningRateDecay = {"learning_rate_decay", &RuleSpec::learning_rate_decay, nullptr,
                                                      kNotNegative};
inline constexpr Hyperparameter kLearningRatePower = {"learning_rate_power", &RuleSpec::learning_rate_power, nullptr,
                                                      kNotPositive};
inline constexpr Hyperparameter kL1 = {"l1", &RuleSpec::l1, nullptr, kNotNegative};
inline constexpr Hyperparameter kL2 = {"l2", &RuleSpec::l2, nullptr, kNotNegative};
inline constexpr Hyperparameter kWeightDecay = {"weight_decay", &RuleSpec::weight_decay, nullptr, kNotNegative};
}  // namespace hyperparameters

struct RuleDescriptor {
  RuleKind kind;
  const char* name;  // on command lines and in manifests: never renamed
  // The rule of a program that says nothing else; rule_options.h has the library's defaults.
  RuleSpec (*standard)();
  // Those of its own, beside the learning rate and weight decay, in the order in which texts have them.
  std::span<const Hyperparameter> hyperparameters = {};
  // What several hyperparameters must be together; null: nothing.
  absl::Status (*check)(const RuleSpec& spec) = nullptr;
  bool has_rate = true;        // a learning rate, its schedule, and weight decay
  bool works_on_rows = false;  // has a meaning for single rows (sparse_rows.h)
  bool takes_whole_numbers = false;
  std::unique_ptr<UpdateRule> (*make)(const RuleSpec& spec);  // hyperparameters have been validated
};

#define RULE(Name, number) extern const RuleDescriptor k##Name##Rule;
MUSTER_UPDATE_RULES(RULE)
#undef RULE

// In the order of the table.
std::span<const RuleDescriptor* const> AllRules();
// Null if no rule has that number.
const RuleDescriptor* FindRule(RuleKind kind);
// The names of the rules that `has` is true of, with commas between.
std::string RuleNames(bool (*has)(const RuleDescriptor& rule));

// "rule momentum: momentum is 1; accepted: …"
absl::Status RefuseHyperparameter(RuleKind kind, const char* name, double value, const char* accepted);

}  // namespace muster
