#include "muster/algo/choice/algorithm_settings.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/nearest_name.h"
#include "muster/cluster/quoted.h"
#include "muster/optim/rule_text.h"

namespace muster {
namespace {

struct WholeSetting {
  absl::string_view name;
  std::optional<uint32_t> AlgorithmSettings::*value;
  uint32_t lowest;
  uint32_t highest;
};

constexpr WholeSetting kWholeSettings[] = {
    {"window", &AlgorithmSettings::window, 1, 1'000'000},
    {"fetch_window", &AlgorithmSettings::fetch_window, 1, 1'000'000},
    {"replicas_to_aggregate", &AlgorithmSettings::replicas_to_aggregate, 0, 1'000'000},
    {"bound", &AlgorithmSettings::bound, 0, 1'000'000},
};

bool NotNegative(double number) { return number >= 0; }
bool AboveZero(double number) { return number > 0; }
bool FractionAboveZero(double number) { return number > 0 && number <= 1; }
bool FractionBelowOne(double number) { return number >= 0 && number < 1; }

struct NumberSetting {
  absl::string_view name;
  std::optional<double> AlgorithmSettings::*value;
  bool (*fits)(double number);  // `number` is finite
  absl::string_view accepted;
};

constexpr absl::string_view kNotNegativeText = "a finite number, at least 0";

constexpr NumberSetting kNumberSettings[] = {
    {"learning_rate", &AlgorithmSettings::learning_rate, NotNegative, kNotNegativeText},
    {"compensation", &AlgorithmSettings::compensation, NotNegative, kNotNegativeText},
    {"gamma", &AlgorithmSettings::gamma, AboveZero, "a finite number above 0"},
    {"beta", &AlgorithmSettings::beta, AboveZero, "a finite number above 0"},
    {"alpha", &AlgorithmSettings::alpha, FractionAboveZero, "above 0 and at most 1"},
    {"rho", &AlgorithmSettings::rho, AboveZero, "a finite number above 0"},
    {"momentum", &AlgorithmSettings::momentum, FractionBelowOne, "at least 0 and below 1"},
};

absl::Status OutOfRange(const AlgorithmInfo& info, absl::string_view name, const std::string& text,
                        absl::string_view accepted) {
  return AlgorithmMistake(info, absl::StrCat(name, " is ", Quoted(text), "; accepted: ", accepted));
}

absl::Status ReadWhole(const AlgorithmInfo& info, absl::string_view name, const std::string& text,
                       AlgorithmSettings& settings) {
  for (const WholeSetting& setting : kWholeSettings) {
    if (setting.name != name) continue;
    int64_t number = -1;
    if (!absl::SimpleAtoi(text, &number) || number < setting.lowest || number > setting.highest)
      return OutOfRange(info, name, text,
                        absl::StrCat("a whole number from ", setting.lowest, " to ", setting.highest));
    settings.*setting.value = static_cast<uint32_t>(number);
  }
  return absl::OkStatus();
}

absl::Status ReadNumber(const AlgorithmInfo& info, absl::string_view name, const std::string& text,
                        AlgorithmSettings& settings) {
  for (const NumberSetting& setting : kNumberSettings) {
    if (setting.name != name) continue;
    double number = 0;
    if (!absl::SimpleAtod(text, &number) || !std::isfinite(number) || !setting.fits(number))
      return OutOfRange(info, name, text, setting.accepted);
    settings.*setting.value = number;
  }
  return absl::OkStatus();
}

absl::Status ReadRates(const AlgorithmInfo& info, absl::string_view name, const std::string& text,
                       AlgorithmSettings& settings) {
  std::vector<double> rates;
  const std::vector<std::string> words = absl::StrSplit(text, ',');
  for (const std::string& word : words) {
    double rate = 0;
    if (!absl::SimpleAtod(word, &rate) || !std::isfinite(rate) || rate < 0)
      return OutOfRange(info, name, text,
                        absl::StrCat("finite numbers, at least 0, separated by commas; ", Quoted(word), " is none"));
    rates.push_back(rate);
  }
  settings.rates = std::move(rates);
  return absl::OkStatus();
}

absl::Status ReadRule(const AlgorithmInfo& info, absl::string_view name, const std::string& text,
                      AlgorithmSettings& settings) {
  auto rule = ParseRuleText(text);
  if (!rule.ok()) return AlgorithmMistake(info, absl::StrCat(name, ": ", rule.status().message()));
  // If the workers have their own rates, another small number would be a factor that the user hasn't asked for.
  const bool scaled = FindParameter(info, "rates") != nullptr && !RuleTextSays(text, "learning_rate") &&
                      (rule->kind == RuleKind::kSgd || rule->kind == RuleKind::kMomentum);
  if (scaled) rule->learning_rate = 1;
  (name == "worker_rule" ? settings.worker_rule : settings.server_rule) = *rule;
  return absl::OkStatus();
}

absl::Status ReadParameter(const AlgorithmInfo& info, const ParameterInfo& parameter, const std::string& text,
                           AlgorithmSettings& settings) {
  switch (parameter.kind) {
    case ParameterKind::kWhole:
      return ReadWhole(info, parameter.name, text, settings);
    case ParameterKind::kNumber:
      return ReadNumber(info, parameter.name, text, settings);
    case ParameterKind::kRates:
      return ReadRates(info, parameter.name, text, settings);
    case ParameterKind::kRule:
      break;
  }
  return ReadRule(info, parameter.name, text, settings);
}

absl::Status UnknownParameter(const AlgorithmInfo& info, const std::string& name) {
  std::vector<std::string> own;
  for (const ParameterInfo& parameter : info.parameters) own.emplace_back(parameter.name);
  std::vector<std::string> others;
  for (const AlgorithmInfo& other : AlgorithmTable())
    if (FindParameter(other, name) != nullptr) others.emplace_back(other.name);
  std::string hint =
      others.empty() ? NearestHint(name, own)
                     : absl::StrCat(" (", absl::StrJoin(others, ", "), others.size() == 1 ? " has it)" : " have it)");
  if (name == "compensation" && FindParameter(info, "worker_rule") != nullptr)
    absl::StrAppend(&hint, ", which is for gradients at the values pulled: with a worker's rule they are at others");
  return AlgorithmMistake(info,
                          absl::StrCat("no parameter ", Quoted(name), hint, "; accepted: ", absl::StrJoin(own, ", ")));
}

// Gives the rate to the rule that the shorthand belongs to, unless the user's text for that rule has one, too.
absl::Status TakeLearningRate(const AlgorithmInfo& info, const std::map<std::string, std::string>& parameters,
                              AlgorithmSettings& settings) {
  if (!settings.learning_rate) return absl::OkStatus();
  const std::string name = RuleOfLearningRate(info);
  const auto text = parameters.find(name);
  if (text != parameters.end() && RuleTextSays(text->second, "learning_rate"))
    return AlgorithmMistake(info, absl::StrCat("learning_rate is ", *settings.learning_rate, ", and ", name, " ",
                                               Quoted(text->second), " says one, too; accepted: one of the two"));
  RuleSpec& rule = name == "worker_rule" ? *settings.worker_rule : *settings.server_rule;
  rule.learning_rate = *settings.learning_rate;
  return absl::OkStatus();
}

}  // namespace

absl::Status AlgorithmMistake(const AlgorithmInfo& info, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("algorithm ", info.name, ": ", what));
}

const ParameterInfo* FindParameter(const AlgorithmInfo& info, absl::string_view name) {
  const auto found = std::find_if(info.parameters.begin(), info.parameters.end(),
                                  [name](const ParameterInfo& parameter) { return parameter.name == name; });
  return found == info.parameters.end() ? nullptr : &*found;
}

std::string RuleOfLearningRate(const AlgorithmInfo& info) {
  return FindParameter(info, "worker_rule") != nullptr ? "worker_rule" : "server_rule";
}

absl::StatusOr<AlgorithmSettings> ReadAlgorithmSettings(const AlgorithmInfo& info,
                                                        const std::map<std::string, std::string>& parameters) {
  for (const auto& given : parameters)
    if (FindParameter(info, given.first) == nullptr) return UnknownParameter(info, given.first);
  AlgorithmSettings settings;
  for (const ParameterInfo& parameter : info.parameters) {
    const auto given = parameters.find(std::string(parameter.name));
    const bool said = given != parameters.end();
    // A default in brackets depends on other parameters or on the cluster.
    if (!said && absl::StartsWith(parameter.standard, "(")) continue;
    RETURN_IF_ERROR(ReadParameter(info, parameter, said ? given->second : std::string(parameter.standard), settings));
  }
  RETURN_IF_ERROR(TakeLearningRate(info, parameters, settings));
  return settings;
}

}  // namespace muster
