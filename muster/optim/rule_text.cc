#include "muster/optim/rule_text.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/nearest_name.h"
#include "muster/optim/rule_descriptor.h"

namespace muster {
namespace {

RuleSpec StandardRule(RuleKind kind) {
  const RuleDescriptor* rule = FindRule(kind);
  return rule != nullptr ? rule->standard() : RuleSpec{.kind = kind};
}

// In the order in which RuleText says them.
std::vector<Hyperparameter> FieldsOf(RuleKind kind) {
  const RuleDescriptor* rule = FindRule(kind);
  if (rule == nullptr || !rule->has_rate) return {};
  std::vector<Hyperparameter> fields = {hyperparameters::kLearningRate};
  fields.insert(fields.end(), rule->hyperparameters.begin(), rule->hyperparameters.end());
  fields.push_back(hyperparameters::kWeightDecay);
  return fields;
}

struct RuleWords {
  std::string rule;
  std::vector<std::pair<std::string, std::string>> given;  // hyperparameters and their values, in order
};

std::string PlainName(absl::string_view word) {
  return absl::StrReplaceAll(absl::AsciiStrToLower(absl::StripAsciiWhitespace(word)), {{"-", "_"}});
}

RuleWords SplitRuleText(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  RuleWords words{PlainName(parts[0]), {}};
  if (parts.size() < 2) return words;
  const std::vector<absl::string_view> items = absl::StrSplit(parts[1], ',');
  for (const absl::string_view item : items) {
    const std::vector<absl::string_view> sides = absl::StrSplit(item, absl::MaxSplits('=', 1));
    const absl::string_view value = sides.size() < 2 ? absl::string_view() : sides[1];
    words.given.emplace_back(PlainName(sides[0]), std::string(absl::StripAsciiWhitespace(value)));
  }
  return words;
}

// Quotes a word for a one-line message.
std::string InQuotes(const std::string& word) { return absl::StrCat("\"", absl::Utf8SafeCHexEscape(word), "\""); }

absl::Status UnknownHyperparameter(const std::string& rule, const std::string& name,
                                   const std::vector<Hyperparameter>& fields) {
  std::vector<std::string> names;
  for (const Hyperparameter& field : fields) names.emplace_back(field.name);
  return absl::InvalidArgumentError(absl::StrCat("rule ", rule, " has no hyperparameter ", InQuotes(name),
                                                 NearestHint(name, names),
                                                 "; accepted: ", names.empty() ? "none" : absl::StrJoin(names, ", ")));
}

absl::Status SetField(const std::string& rule, const Hyperparameter& field, const std::string& value, RuleSpec& spec) {
  if (field.flag != nullptr) {
    if (value != "0" && value != "1")
      return absl::InvalidArgumentError(
          absl::StrCat("rule ", rule, ": ", field.name, " is ", InQuotes(value), "; accepted: 0 or 1"));
    spec.*field.flag = value == "1";
  } else if (!absl::SimpleAtod(value, &(spec.*field.number))) {
    return absl::InvalidArgumentError(absl::StrCat("rule ", rule, ": ", field.name, " is ", InQuotes(value),
                                                   "; accepted: a number, as in ", rule, ":", field.name, "=0.1"));
  }
  return absl::OkStatus();
}

// Returns the shortest decimal number that is read as the same double.
std::string ShortestNumber(double number) {
  char digits[32];
  return std::string(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

// Writes the fields that differ from the rule's defaults, and the number named `always`.
std::string TextOf(const RuleSpec& rule, absl::string_view always) {
  const RuleSpec standard = StandardRule(rule.kind);
  std::vector<std::string> given;
  for (const Hyperparameter& field : FieldsOf(rule.kind)) {
    if (field.flag != nullptr) {
      if (rule.*field.flag != standard.*field.flag)
        given.push_back(absl::StrCat(field.name, "=", rule.*field.flag ? 1 : 0));
    } else if (rule.*field.number != standard.*field.number || field.name == always) {
      given.push_back(absl::StrCat(field.name, "=", ShortestNumber(rule.*field.number)));
    }
  }
  return absl::StrCat(RuleName(rule.kind), given.empty() ? "" : ":", absl::StrJoin(given, ","));
}

}  // namespace

absl::StatusOr<RuleSpec> ParseRuleText(absl::string_view text) {
  const RuleWords words = SplitRuleText(text);
  const auto kind = ParseRule(words.rule);
  if (!kind.ok()) {
    std::vector<std::string> names;
    for (const RuleDescriptor* rule : AllRules()) names.emplace_back(rule->name);
    return absl::InvalidArgumentError(absl::StrCat("unknown update rule ", InQuotes(words.rule),
                                                   NearestHint(words.rule, names),
                                                   "; accepted: ", absl::StrJoin(names, ", ")));
  }
  RuleSpec spec = StandardRule(*kind);
  const std::vector<Hyperparameter> fields = FieldsOf(*kind);
  std::vector<std::string> said;
  for (const auto& given : words.given) {
    const std::string& name = given.first;
    const auto field =
        std::find_if(fields.begin(), fields.end(), [&](const Hyperparameter& f) { return name == f.name; });
    if (field == fields.end()) return UnknownHyperparameter(words.rule, name, fields);
    if (std::find(said.begin(), said.end(), name) != said.end())
      return absl::InvalidArgumentError(
          absl::StrCat("rule ", words.rule, ": ", name, " is given twice; accepted: once"));
    said.push_back(name);
    RETURN_IF_ERROR(SetField(words.rule, *field, given.second, spec));
  }
  RETURN_IF_ERROR(CheckRule(spec));
  return spec;
}

bool RuleTextSays(absl::string_view text, absl::string_view hyperparameter) {
  const RuleWords words = SplitRuleText(text);
  return std::any_of(words.given.begin(), words.given.end(),
                     [&](const auto& given) { return given.first == hyperparameter; });
}

std::string RuleText(const RuleSpec& rule) { return TextOf(rule, /*always=*/""); }

std::string RuleTextWithRate(const RuleSpec& rule) { return TextOf(rule, /*always=*/"learning_rate"); }

}  // namespace muster
