#include "muster/launch/spec/parameters.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "muster/base/absl_view.h"
#include "muster/base/split_mix64.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/nearest_name.h"
#include "muster/cluster/quoted.h"
#include "muster/launch/spec/yaml_tree.h"
#include "muster/launch/system/shell_text.h"
#include "muster/launch/system/shell_word.h"

namespace muster {
namespace {

constexpr int kMostRuns = 10'000;
constexpr size_t kLongestParameterName = 100;
constexpr char kParameterNameRule[] =
    "letters, digits, '-' and '_', at most 100, beginning with a letter, as learning-rate";

// Variables that `muster train` sets for each task.
constexpr absl::string_view kExperimentVariables[] = {"OUTPUT_DIR",
                                                      "EXPERIMENT_ID",
                                                      "JOB_NAME",
                                                      "PROJECT",
                                                      "TF_CONFIG",
                                                      "MUSTER_JOB_TOKEN",
                                                      "MUSTER_RUN_ID",
                                                      "MUSTER_AGENT_ID",
                                                      "MUSTER_CLUSTER_FILE",
                                                      "MUSTER_HEARD_FILE",
                                                      "MUSTER_TASK_LIFE",
                                                      "MUSTER_STATUS_PORT",
                                                      "MUSTER_PROCESSES_ON_HOST"};
// Variables that it also sets with torchrun.
constexpr absl::string_view kTorchrunVariables[] = {
    "RANK",        "LOCAL_RANK",  "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK",     "GROUP_WORLD_SIZE",
    "MASTER_ADDR", "MASTER_PORT", "ROLE_NAME",  "ROLE_RANK",        "ROLE_WORLD_SIZE"};
// Variables that shells, the loader, Python and CUDA read.
constexpr absl::string_view kSystemVariables[] = {
    "PATH",       "HOME",       "USER",       "LOGNAME",     "SHELL",
    "PWD",        "IFS",        "TMPDIR",     "BASH_ENV",    "LD_LIBRARY_PATH",
    "LD_PRELOAD", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CUDA_VISIBLE_DEVICES"};

bool IsOneOf(std::span<const absl::string_view> names, absl::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

absl::Status RangeMistake(const ParameterSpec::Range& range, const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat("range from ", range.min, " to ", range.max, " by ", range.step, ": ", what));
}

absl::Status CheckRange(const ParameterSpec::Range& range) {
  if (range.max < range.min) return RangeMistake(range, "max is below min; accepted: min at most as large as max");
  if (!range.logarithmic && !(range.step > 0))
    return RangeMistake(range, "no step from one value to the next; accepted: a step above 0");
  if (range.logarithmic && !(range.step > 1))
    return RangeMistake(range, "logarithmic, so step is a factor; accepted: a step above 1");
  if (range.logarithmic && !(range.min > 0))
    return RangeMistake(range, "logarithmic from 0 or below; accepted: a min above 0");
  return absl::OkStatus();
}

// Prints `value` to within `tolerance` with as few digits as possible, and without an exponent if people would write
// none: 0.3 for 0.30000000000000004.
std::string ShortNumber(double value, double tolerance) {
  const double size = std::abs(value);
  if (size <= tolerance) return "0";
  const bool plain = size >= 1e-4 && size < 1e15;
  std::string text;
  for (int digits = 0; digits <= 17; ++digits) {
    text = plain ? absl::StrFormat("%.*f", digits, value) : absl::StrFormat("%.*e", digits, value);
    double read = 0;
    if (absl::SimpleAtod(text, &read) && std::abs(read - value) <= tolerance) break;
  }
  return text;
}

// Rounds to six digits: enough for a search, and few enough to hide differences between machines' log and exp.
std::string DrawnNumber(const ParameterSpec::Range& range, double value) {
  double rounded = value;
  const bool read = absl::SimpleAtod(absl::StrFormat("%.6g", value), &rounded);
  const double within = std::clamp(read ? rounded : value, range.min, range.max);
  return ShortNumber(within, std::abs(within) * 1e-12);
}

bool IsContinuous(const ParameterSpec& parameter) { return parameter.range && !parameter.range->whole; }

std::string DrawnValue(const ParameterSpec& parameter, SplitMix64& random) {
  if (!IsContinuous(parameter)) return parameter.values[random.Below(parameter.values.size())];
  const ParameterSpec::Range& range = *parameter.range;
  const double share = static_cast<double>(random.Next() >> 11) * 0x1p-53;  // 0 to 1, 1 excluded
  if (!range.logarithmic) return DrawnNumber(range, range.min + (range.max - range.min) * share);
  return DrawnNumber(range, std::exp(std::log(range.min) + (std::log(range.max) - std::log(range.min)) * share));
}

// Returns the number of combinations; nullopt if there are more than can be listed, or infinitely many.
std::optional<int> CombinationsOf(const std::vector<ParameterSpec>& parameters) {
  size_t count = 1;
  for (const ParameterSpec& parameter : parameters) {
    if (IsContinuous(parameter)) return std::nullopt;
    count *= parameter.values.size();
    if (count > kMostRuns) return std::nullopt;
  }
  return static_cast<int>(count);
}

// A piece of a command: text, and the parameter whose value follows it (empty at the end).
struct TemplatePiece {
  std::string text, name;
};

std::string NoSuchParameter(const std::string& name, const ParameterValues& values) {
  std::vector<std::string> names;
  for (const auto& [known, value] : values) {
    names.push_back(known);
    if (EnvironmentNameOf(known) == EnvironmentNameOf(name))
      return absl::StrCat("{{ ", name, " }}: the parameter is called ", known, "; did you mean {{ ", known, " }}?");
  }
  return absl::StrCat("{{ ", name, " }}: there is no such parameter", NearestHint(name, names),
                      "; accepted: ", names.empty() ? "" : absl::StrJoin(names, ", ") + ", or ",
                      "a new one, in train.parameters or by --param ", name, "=VALUE");
}

std::string MisplacedValue(const std::string& name, const std::string& value, int line, const absl::Status& why) {
  return absl::StrCat("{{ ", name, " }} with the value ", Quoted(value), " in line ", line, " of the command: it is ",
                      why.message());
}

absl::StatusOr<std::vector<TemplatePiece>> TemplatePieces(std::string_view text) {
  std::vector<TemplatePiece> pieces;
  while (true) {
    const size_t open = text.find("{{");
    if (open == std::string_view::npos) {
      pieces.push_back({std::string(text), ""});
      return pieces;
    }
    const size_t close = text.find("}}", open);
    if (close == std::string_view::npos)
      return absl::InvalidArgumentError(absl::StrCat("\"{{\" without \"}}\" in ", Quoted(text.substr(open)),
                                                     "; accepted: {{ name }}; a shell gets {{ by {'{'"));
    const std::string name(absl::StripAsciiWhitespace(AbslView(text.substr(open + 2, close - open - 2))));
    const bool is_name = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
      return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
    });
    if (!is_name)
      return absl::InvalidArgumentError(
          absl::StrCat(Quoted(text.substr(open, close + 2 - open)),
                       ": there is no parameter's name; accepted: {{ name }}, name being ", kParameterNameRule,
                       "; a shell gets {{ by {'{'"));
    pieces.push_back({std::string(text.substr(0, open)), name});
    text.remove_prefix(close + 2);
  }
}

absl::StatusOr<ParameterSpec> OverrideOf(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos)
    return absl::InvalidArgumentError(
        absl::StrCat("--param ", Quoted(text), ": there is no '='; accepted: NAME=VALUE or NAME=[VALUE,VALUE]"));
  ParameterSpec parameter{.name = text.substr(0, equals)};
  RETURN_IF_ERROR(ValidateParameterName(parameter.name));
  const std::string value = text.substr(equals + 1);
  if (!absl::StartsWith(value, "[")) {
    parameter.values.push_back(value);
    return parameter;
  }
  const absl::StatusOr<YamlNode> list = ParseYaml(value, "--param " + parameter.name);
  const auto is_value = [](const YamlNode& item) { return item.kind == YamlKind::kScalar; };
  const bool accepted = list.ok() && list->kind == YamlKind::kList && !list->items.empty() &&
                        std::all_of(list->items.begin(), list->items.end(), is_value);
  if (!accepted)
    return absl::InvalidArgumentError(
        absl::StrCat("--param ", Quoted(text), ": not a list of values; accepted: NAME=[VALUE,VALUE], at least one, ",
                     "in double quotes those with commas or brackets"));
  for (const YamlNode& item : list->items) parameter.values.push_back(item.text);
  return parameter;
}

// Refuses an empty value where the file has numbers: programs would take their own default for it.
absl::Status CheckNumbersStay(const ParameterSpec& before, const ParameterSpec& changed) {
  const auto is_number = [](const std::string& value) {
    double number = 0;
    return absl::SimpleAtod(value, &number);
  };
  const bool numbers =
      before.range || (!before.values.empty() && std::all_of(before.values.begin(), before.values.end(), is_number));
  if (!numbers || std::find(changed.values.begin(), changed.values.end(), "") == changed.values.end())
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--param ", changed.name, "= has no value, and the file has numbers",
                                                 "; accepted: a number, or no --param ", changed.name));
}

}  // namespace

bool IsExperimentVariable(std::string_view variable, bool torchrun) {
  return IsOneOf(kExperimentVariables, AbslView(variable)) ||
         (torchrun && (IsOneOf(kTorchrunVariables, AbslView(variable)) || variable.starts_with("TORCHELASTIC_")));
}

absl::Status ValidateParameterName(std::string_view name) {
  const bool plain = !name.empty() && name.size() <= kLongestParameterName &&
                     absl::ascii_isalpha(static_cast<unsigned char>(name[0])) &&
                     std::all_of(name.begin(), name.end(), [](char c) {
                       return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
                     });
  if (!plain)
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(name), " isn't a parameter name; accepted: ", kParameterNameRule));
  const std::string variable = EnvironmentNameOf(name);
  if (IsExperimentVariable(variable, false) || IsOneOf(kSystemVariables, variable) ||
      absl::StartsWith(variable, "MUSTER_"))
    return absl::InvalidArgumentError(absl::StrCat(Quoted(name), " would be the environment variable ", variable,
                                                   ", which means something already; accepted: another name"));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ParameterSpec>> WithOverrides(std::vector<ParameterSpec> parameters,
                                                         const std::vector<std::string>& overrides) {
  std::set<std::string> given;
  for (const std::string& text : overrides) {
    ASSIGN_OR_RETURN(ParameterSpec changed, OverrideOf(text));
    if (!given.insert(changed.name).second)
      return absl::InvalidArgumentError(absl::StrCat("--param ", changed.name, " is there twice; accepted: once, with ",
                                                     "several values as ", changed.name, "=[VALUE,VALUE]"));
    const std::string variable = EnvironmentNameOf(changed.name);
    const auto same = std::find_if(parameters.begin(), parameters.end(), [&variable](const ParameterSpec& parameter) {
      return EnvironmentNameOf(parameter.name) == variable;
    });
    if (same == parameters.end()) {
      parameters.push_back(std::move(changed));
    } else if (same->name == changed.name) {
      RETURN_IF_ERROR(CheckNumbersStay(*same, changed));
      *same = std::move(changed);
    } else {
      return absl::InvalidArgumentError(absl::StrCat("--param ", changed.name, ": the parameter is called ", same->name,
                                                     "; did you mean --param ",
                                                     ShellWord(same->name + text.substr(text.find('='))), "?"));
    }
  }
  return parameters;
}

absl::StatusOr<std::vector<std::string>> ValuesOfRange(const ParameterSpec::Range& range) {
  RETURN_IF_ERROR(CheckRange(range));
  const double steps = range.logarithmic ? (std::log(range.max) - std::log(range.min)) / std::log(range.step)
                                         : (range.max - range.min) / range.step;
  // Tolerates rounding errors, so that a last value that should fall on max is included.
  const double last = std::floor(steps + 1e-9 * std::max(1.0, steps));
  if (!(last < kMostRuns))
    return RangeMistake(range, absl::StrCat("more than ", kMostRuns, " values; accepted: a larger step"));
  std::vector<std::string> values;
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    const double value = range.logarithmic ? range.min * std::pow(range.step, i) : range.min + range.step * i;
    const double bounded = std::min(value, range.max);
    const double tolerance = range.logarithmic ? std::abs(bounded) * 1e-9 : range.step * 1e-9;
    values.push_back(range.whole ? absl::StrCat(std::llround(bounded)) : ShortNumber(bounded, tolerance));
  }
  return values;
}

absl::StatusOr<std::vector<ParameterValues>> AllCombinations(const std::vector<ParameterSpec>& parameters) {
  std::vector<ParameterValues> runs = {{}};
  for (const ParameterSpec& parameter : parameters) {
    if (runs.size() * parameter.values.size() > kMostRuns)
      return absl::InvalidArgumentError(absl::StrCat("the grid has more than ", kMostRuns,
                                                     " runs; accepted: fewer values, or some of them at random"));
    std::vector<ParameterValues> longer;
    longer.reserve(runs.size() * parameter.values.size());
    for (const ParameterValues& run : runs)
      for (const std::string& value : parameter.values) longer.emplace_back(run)[parameter.name] = value;
    runs = std::move(longer);
  }
  return runs;
}

absl::StatusOr<std::vector<ParameterValues>> RandomCombinations(const std::vector<ParameterSpec>& parameters, int count,
                                                                uint64_t seed) {
  if (count < 1 || count > kMostRuns)
    return absl::InvalidArgumentError(absl::StrCat(count, " random runs; accepted are 1 to ", kMostRuns));
  SplitMix64 random(seed);
  if (CombinationsOf(parameters)) {
    // Draws without replacement, like cards from a shuffled deck.
    ASSIGN_OR_RETURN(std::vector<ParameterValues> pack, AllCombinations(parameters));
    const size_t drawn = std::min(pack.size(), static_cast<size_t>(count));
    for (size_t i = 0; i < drawn; ++i) std::swap(pack[i], pack[i + random.Below(pack.size() - i)]);
    pack.resize(drawn);
    return pack;
  }
  // More combinations exist than may be asked for, or infinitely many, unless the bounds are so close that six digits
  // can't tell them apart; hence the limit on tries.
  std::vector<ParameterValues> runs;
  std::set<ParameterValues> seen;
  for (int tries = 0; tries < 100 * count && static_cast<int>(runs.size()) < count; ++tries) {
    ParameterValues run;
    for (const ParameterSpec& parameter : parameters) run[parameter.name] = DrawnValue(parameter, random);
    if (seen.insert(run).second) runs.push_back(std::move(run));
  }
  return runs;
}

absl::StatusOr<std::vector<std::string>> TemplateNames(std::string_view text) {
  ASSIGN_OR_RETURN(const std::vector<TemplatePiece> pieces, TemplatePieces(text));
  std::vector<std::string> names;
  for (const TemplatePiece& piece : pieces)
    if (!piece.name.empty()) names.push_back(piece.name);
  return names;
}

absl::StatusOr<std::string> FillTemplate(std::string_view text, const ParameterValues& values) {
  ASSIGN_OR_RETURN(const std::vector<TemplatePiece> pieces, TemplatePieces(text));
  ShellText filled;
  std::vector<std::string> mistakes;
  for (const TemplatePiece& piece : pieces) {
    filled.Append(piece.text);
    const auto value = values.find(piece.name);
    if (value != values.end()) {
      const absl::Status placed = filled.AppendValue(value->second, ValueVariableOf(piece.name));
      if (!placed.ok()) mistakes.push_back(MisplacedValue(piece.name, value->second, filled.line(), placed));
    } else if (!piece.name.empty()) {
      mistakes.push_back(NoSuchParameter(piece.name, values));
    }
  }
  if (mistakes.empty()) return filled.text();
  return absl::InvalidArgumentError(absl::StrJoin(mistakes, "\n"));
}

std::string EnvironmentNameOf(std::string_view parameter) {
  std::string name = absl::AsciiStrToUpper(AbslView(parameter));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string ValueVariableOf(std::string_view parameter) {
  return absl::StrCat("MUSTER_VALUE_", EnvironmentNameOf(parameter));
}

}  // namespace muster
