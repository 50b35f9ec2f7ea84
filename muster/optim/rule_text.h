// An update rule as a command line says it: `adam`, `sgd:learning_rate=0.1`,
// `momentum:learning_rate=0.7,momentum=0.9,nesterov=1`. Pure; thread-safe.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/optim/rule_spec.h"

namespace muster {

// A rule's name, then after a colon hyperparameters by their names in RuleSpec (numbers; flags as 0 and 1), separated
// by commas; what isn't said is as rule_options.h has it. In names '-' and '_' are the same, capitals and small letters
// too. InvalidArgument names what isn't a rule or a hyperparameter of that rule, with the nearest that is, and
// CheckRule's mistakes.
absl::StatusOr<RuleSpec> ParseRuleText(absl::string_view text);

// Whether the text gives that hyperparameter a value, be it the one that it has anyway. Of a text that ParseRuleText
// reads.
bool RuleTextSays(absl::string_view text, absl::string_view hyperparameter);

// The shortest text that ParseRuleText makes the same rule from; of a rule with clipping or a schedule, which the text
// can't say, without these.
std::string RuleText(const RuleSpec& rule);
// For people: the learning rate is said even where it is the rule's own.
std::string RuleTextWithRate(const RuleSpec& rule);

}  // namespace muster
