// The command-line part of AlgorithmChoice: which flags belong to an algorithm, and how they change a program's own
// choice.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "muster/algo/choice/algorithm_choice.h"
#include "muster/algo/choice/algorithm_settings.h"
#include "muster/algo/choice/algorithm_table.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/program_name.h"
#include "muster/cluster/identity/flag_scan.h"
#include "muster/cluster/quoted.h"
#include "muster/optim/rule_spec.h"
#include "muster/optim/rule_text.h"

namespace muster {
namespace {

constexpr char kAlgorithmFlag[] = "algorithm";
constexpr char kDeterministicFlag[] = "deterministic";

std::string AcceptedText(ParameterKind kind) {
  switch (kind) {
    case ParameterKind::kWhole:
      return "N";
    case ParameterKind::kNumber:
      return "NUMBER";
    case ParameterKind::kRule:
      return "RULE[:HYPERPARAMETER=NUMBER,...]";
    case ParameterKind::kRates:
      break;
  }
  return "NUMBER,NUMBER,...";
}

std::optional<KnownFlag> FindAlgorithmFlag(const std::string& written) {
  const std::string name = absl::StrReplaceAll(written, {{"-", "_"}});
  if (name == kAlgorithmFlag) return KnownFlag{name, "NAME"};
  if (name == kDeterministicFlag) return KnownFlag{name, "0|1", /*is_switch=*/true};
  for (const AlgorithmInfo& info : AlgorithmTable()) {
    const ParameterInfo* parameter = FindParameter(info, name);
    if (parameter != nullptr) return KnownFlag{name, AcceptedText(parameter->kind)};
  }
  return std::nullopt;
}

// Returns values by flag name.
absl::StatusOr<std::map<std::string, std::string>> GivenOnce(const FlagScan& scan) {
  std::map<std::string, std::string> values;
  for (const GivenFlag& flag : scan.given) {
    const auto [before, added] = values.emplace(flag.name, flag.value);
    if (!added)
      return absl::InvalidArgumentError(absl::StrCat("--", flag.name, " is given twice, ", Quoted(before->second),
                                                     " and ", Quoted(flag.value), "; accepted: once"));
  }
  return values;
}

// Returns the rule with its own default learning rate, which the text needn't say. Text that isn't a rule is returned
// as it is.
std::string WithoutLearningRate(const std::string& text) {
  auto rule = ParseRuleText(text);
  if (!rule.ok() || !RuleTextSays(text, "learning_rate")) return text;
  rule->learning_rate = ParseRuleText(RuleName(rule->kind))->learning_rate;
  return RuleText(*rule);
}

// Drops the program's parameters that the user's contradict.
void MakeWay(const AlgorithmInfo& info, const std::map<std::string, std::string>& given,
             std::map<std::string, std::string>& parameters) {
  const auto says = [&given](const std::string& name) { return given.find(name) != given.end(); };
  if (says("alpha")) parameters.erase("rho");
  if (says("rho")) parameters.erase("alpha");
  const std::string rule = RuleOfLearningRate(info);
  if (says(rule)) {
    parameters.erase("learning_rate");  // it was meant for the other rule
  } else if (says("learning_rate")) {
    const auto text = parameters.find(rule);
    if (text != parameters.end()) text->second = WithoutLearningRate(text->second);
  }
}

absl::StatusOr<bool> ReadSwitch(const std::string& value) {
  if (value == "1" || value == "true") return true;
  if (value == "0" || value == "false") return false;
  return absl::InvalidArgumentError(absl::StrCat("--", kDeterministicFlag, " is ", Quoted(value), "; accepted: --",
                                                 kDeterministicFlag, ", or =0 or =1"));
}

absl::StatusOr<AlgorithmChoice> Choose(const FlagScan& scan, AlgorithmChoice standard) {
  ASSIGN_OR_RETURN(auto given, GivenOnce(scan));
  AlgorithmChoice choice = std::move(standard);
  if (const auto flag = given.extract(kDeterministicFlag); !flag.empty()) {
    ASSIGN_OR_RETURN(choice.deterministic, ReadSwitch(flag.mapped()));
  }
  const AlgorithmInfo* info = FindAlgorithm(choice.name);
  if (const auto flag = given.extract(kAlgorithmFlag); !flag.empty()) {
    const AlgorithmInfo* other = FindAlgorithm(flag.mapped());
    if (other == nullptr) return UnknownAlgorithm(flag.mapped());
    if (other != info) choice.parameters.clear();
    choice.name = flag.mapped();
    info = other;
  }
  if (info != nullptr) MakeWay(*info, given, choice.parameters);
  for (auto& [name, value] : given) choice.parameters[name] = std::move(value);
  return choice;
}

}  // namespace

absl::StatusOr<AlgorithmChoice> AlgorithmChoice::FromArguments(std::vector<std::string>& arguments,
                                                               AlgorithmChoice standard) {
  ASSIGN_OR_RETURN(const FlagScan scan, ScanFlags(arguments, FindAlgorithmFlag));
  ASSIGN_OR_RETURN(AlgorithmChoice choice, Choose(scan, std::move(standard)));
  KeepArguments(scan.kept, arguments);
  return choice;
}

AlgorithmChoice AlgorithmChoice::FromCommandLine(int& argc, char** argv, AlgorithmChoice standard) {
  const auto scan = ScanFlags(ArgumentsOf(argc, argv), FindAlgorithmFlag);
  auto choice = scan.ok() ? Choose(*scan, std::move(standard)) : scan.status();
  if (choice.ok()) {
    KeepArguments(scan->kept, argc, argv);
    return *std::move(choice);
  }
  std::fprintf(stderr, "%s: %s\n", ProgramName(argc > 0 ? argv[0] : "muster").c_str(),
               std::string(choice.status().message()).c_str());
  std::exit(2);
}

std::string AlgorithmFlagsHelp() {
  std::string help;
  const auto add = [&help](const char* flag, const char* meaning) {
    absl::StrAppendFormat(&help, "  %-38s %s\n", flag, meaning);
  };
  add("--algorithm=NAME", "how the workers' updates are combined; `muster algorithms` lists the names");
  add("--window=N --learning_rate=NUMBER ...", "its parameters; `muster algorithms NAME` lists them");
  add("--deterministic", "commits in the workers' order, on one thread each: a repeatable run");
  return help;
}

std::vector<std::string> AlgorithmFlagNames() {
  std::vector<std::string> names = {kAlgorithmFlag, kDeterministicFlag};
  for (const AlgorithmInfo& info : AlgorithmTable()) {
    for (const ParameterInfo& parameter : info.parameters) {
      if (std::find(names.begin(), names.end(), parameter.name) == names.end()) names.emplace_back(parameter.name);
    }
  }
  return names;
}

}  // namespace muster
