// Which rule updates which variable: a default, and groups of variables with rules of their own (torch's parameter
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
  std::vector<std::string> variables;  // exact names, or a prefix followed by '*': "embedding.*", "*"
  RuleSpec rule;

  bool operator==(const ParameterGroup&) const = default;
};

// What to do with a push whose gradients aren't all finite. All but kApply cost the worker a pass over them. The
// numbers are part of the wire format: never renumber.
enum class NonFinite : uint8_t {
  kApply = 0,  // apply it, as TensorFlow does
  kDrop = 1,   // apply nothing of it on any ps; ps 0 counts it; a gate treats it as a gradient of zero
  kStop = 2,   // the worker's step fails with InvalidArgument, which names the variable
};

struct OptimizerSpec {
  OptimizerSpec() = default;
  // A rule alone is an optimizer for all variables: most programs use this.
  OptimizerSpec(const RuleSpec& rule, std::vector<ParameterGroup> groups = {});  // NOLINT(google-explicit-constructor)

  // Returns the rule of the first group that names the variable, else the default.
  const RuleSpec& RuleFor(std::string_view variable) const;

  RuleSpec rule;
  std::vector<ParameterGroup> groups;
  NonFinite non_finite = NonFinite::kApply;

  bool operator==(const OptimizerSpec&) const = default;
};

// InvalidArgument if a rule is invalid (CheckRule), if a group names none of `variables` (all of the model), or if the
// rules differ in clipping by the global norm, which is one norm for all variables.
[[nodiscard]] absl::Status CheckOptimizer(const OptimizerSpec& optimizer, const std::vector<std::string>& variables);

}  // namespace muster
