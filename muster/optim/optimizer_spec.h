// Which rule updates which variable: a default and groups of variables with rules of their own (torch's parameter
// groups). A plain value; no thread safety needed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "muster/optim/rule_spec.h"

namespace muster {

struct ParameterGroup {
  std::vector<std::string> variables;  // exact names, or a beginning of names followed by '*': "embedding.*", "*"
  RuleSpec rule;

  bool operator==(const ParameterGroup&) const = default;
};

// What becomes of a push whose gradients aren't all finite numbers. But for kApply that costs the worker a pass over
// them. The numbers are written to the wire: never renumber.
enum class NonFinite : uint8_t {
  kApply = 0,  // it is applied, as TensorFlow does
  kDrop = 1,   // nothing of it is applied, on any ps, and ps 0 counts it; a gate takes it for a gradient of zero
  kStop = 2,   // the worker's step fails with InvalidArgument, which names the variable
};

struct OptimizerSpec {
  OptimizerSpec() = default;
  // A rule alone is an optimizer for all variables: what most programs say.
  OptimizerSpec(const RuleSpec& rule, std::vector<ParameterGroup> groups = {});  // NOLINT(google-explicit-constructor)

  // The rule of the first group that names the variable, else the default.
  const RuleSpec& RuleFor(std::string_view variable) const;

  RuleSpec rule;
  std::vector<ParameterGroup> groups;
  NonFinite non_finite = NonFinite::kApply;

  bool operator==(const OptimizerSpec&) const = default;
};

// InvalidArgument if a rule is wrong (CheckRule), if a group names none of `variables` (all of the model), or if
// clipping by the global norm, which is one norm for all variables, isn't the same in every rule.
[[nodiscard]] absl::Status CheckOptimizer(const OptimizerSpec& optimizer, const std::vector<std::string>& variables);

}  // namespace muster
