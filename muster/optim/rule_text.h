// Update rules as text on a command line: `adam`, `sgd:learning_rate=0.1`,
// `momentum:learning_rate=0.7,momentum=0.9,nesterov=1`. Pure; thread-safe.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/optim/rule_spec.h"

namespace muster {

// Reads a rule's name, then, after a colon and separated by commas, hyperparameters by their names in RuleSpec
// (numbers; flags as 0 and 1). Others keep the defaults of rule_options.h. In names, '-' equals '_', and case doesn't
// matter. InvalidArgument names an unknown rule or hyperparameter with the nearest known one, and reports CheckRule's
// errors.
absl::StatusOr<RuleSpec> ParseRuleText(absl::string_view text);

// True if the text gives that hyperparameter a value, even its default. ParseRuleText must accept the text.
bool RuleTextSays(absl::string_view text, absl::string_view hyperparameter);

// Returns the shortest text from which ParseRuleText makes the same rule. Clipping and schedule, which the text can't
// express, are left out.
std::string RuleText(const RuleSpec& rule);
// For people: always includes the learning rate.
std::string RuleTextWithRate(const RuleSpec& rule);

}  // namespace muster
