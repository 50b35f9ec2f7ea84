#include "muster/optim/rule_descriptor.h"

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr const RuleDescriptor* kRules[] = {
#define RULE(Name, number) &k##Name##Rule,
    MUSTER_UPDATE_RULES(RULE)
#undef RULE
};

}  // namespace

std::span<const RuleDescriptor* const> AllRules() { return kRules; }

const RuleDescriptor* FindRule(RuleKind kind) {
  for (const RuleDescriptor* rule : kRules)
    if (rule->kind == kind) return rule;
  return nullptr;
}

std::string RuleNames(bool (*has)(const RuleDescriptor& rule)) {
  std::string names;
  for (const RuleDescriptor* rule : kRules)
    if (has(*rule)) absl::StrAppend(&names, names.empty() ? "" : ", ", rule->name);
  return names;
}

absl::Status RefuseHyperparameter(RuleKind kind, const char* name, double value, const char* accepted) {
  return absl::InvalidArgumentError(
      absl::StrCat("rule ", RuleName(kind), ": ", name, " is ", value, "; accepted: ", accepted));
}

}  // namespace muster
