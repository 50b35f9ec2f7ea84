#include "muster/optim/optimizer_spec.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

bool Names(const std::string& pattern, std::string_view variable) {
  if (!pattern.ends_with('*')) return variable == pattern;
  return variable.starts_with(std::string_view(pattern).substr(0, pattern.size() - 1));
}

bool Names(const ParameterGroup& group, std::string_view variable) {
  return std::any_of(group.variables.begin(), group.variables.end(),
                     [&](const std::string& pattern) { return Names(pattern, variable); });
}

std::string Describe(const OptimizerSpec& optimizer, size_t group) {
  return absl::StrCat("parameter group ", group, " ('", absl::StrJoin(optimizer.groups[group].variables, "', '"), "')");
}

}  // namespace

OptimizerSpec::OptimizerSpec(const RuleSpec& default_rule, std::vector<ParameterGroup> parameter_groups)
    : rule(default_rule), groups(std::move(parameter_groups)) {}

const RuleSpec& OptimizerSpec::RuleFor(std::string_view variable) const {
  for (const ParameterGroup& group : groups)
    if (Names(group, variable)) return group.rule;
  return rule;
}

absl::Status CheckOptimizer(const OptimizerSpec& optimizer, const std::vector<std::string>& variables) {
  RETURN_IF_ERROR(CheckRule(optimizer.rule));
  if (optimizer.non_finite > NonFinite::kStop)
    return absl::InvalidArgumentError(absl::StrCat("non_finite is ", static_cast<int>(optimizer.non_finite),
                                                   "; accepted: 0 (apply), 1 (drop), 2 (stop)"));
  for (size_t i = 0; i < optimizer.groups.size(); ++i) {
    const ParameterGroup& group = optimizer.groups[i];
    const absl::Status valid = CheckRule(group.rule);
    if (!valid.ok()) return absl::InvalidArgumentError(absl::StrCat(Describe(optimizer, i), ": ", valid.message()));
    if (std::none_of(variables.begin(), variables.end(), [&](const std::string& name) { return Names(group, name); }))
      return absl::InvalidArgumentError(absl::StrCat(
          Describe(optimizer, i), " names no variable of the model; it has ", variables.size(), ": ",
          absl::StrJoin(variables.begin(), variables.begin() + std::min<size_t>(variables.size(), 10), ", "),
          variables.size() > 10 ? ", …" : ""));
    const bool global =
        group.rule.clip.kind == ClipKind::kGlobalNorm || optimizer.rule.clip.kind == ClipKind::kGlobalNorm;
    if (global && !(group.rule.clip == optimizer.rule.clip))
      return absl::InvalidArgumentError(
          absl::StrCat(Describe(optimizer, i), " clips by ", ClipName(group.rule.clip.kind), " ", group.rule.clip.limit,
                       ", the default rule by ", ClipName(optimizer.rule.clip.kind), " ", optimizer.rule.clip.limit,
                       "; a global norm is of all variables: give the same to every group"));
  }
  return absl::OkStatus();
}

}  // namespace muster
