// `muster algorithms [NAME]`: the ways to combine the workers' updates; of one its formula, parameters and sources.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "apps/muster/commands/command_table.h"
#include "apps/muster/terminal/usage_error.h"
#include "muster/algo/choice/algorithm_table.h"
#include "muster/base/check.h"
#include "muster/optim/rule_text.h"

namespace muster {
namespace {

constexpr char kAlgorithmsDescription[] =
    "List the ways to combine the workers' updates (--algorithm=NAME of a training program)";

constexpr char kAlgorithmsFooter[] = R"(
Examples:
  muster algorithms              all names, one per line
  muster algorithms downpour     its formula, parameters with their defaults, reference, and when to use it

An unknown name is one line on stderr, with the nearest known name, and exit code 2.)";

constexpr size_t kWidth = 100;  // columns of wrapped text

// Counts the columns of UTF-8 text, without marks that are drawn over the letter before them (the tilde of θ̃).
size_t Columns(const std::string& text) {
  size_t columns = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
    const bool combines = text.compare(i, 2, "\xCC\x83") == 0;
    if (begins && !combines) ++columns;
  }
  return columns;
}

// Returns the words in lines that begin with `indent` and have at most kWidth columns, unless a word is longer.
std::string Wrapped(absl::string_view text, const std::string& indent) {
  const std::vector<std::string> words = absl::StrSplit(text, ' ', absl::SkipEmpty());
  std::string lines;
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty() && Columns(indent) + Columns(line) + 1 + Columns(word) > kWidth) {
      absl::StrAppend(&lines, indent, line, "\n");
      line.clear();
    }
    absl::StrAppend(&line, line.empty() ? "" : " ", word);
  }
  return absl::StrCat(lines, indent, line, "\n");
}

// Returns ASCII text padded to so many columns and two more.
std::string Cell(absl::string_view text, size_t columns) {
  return absl::StrCat(text, std::string(columns - std::min(columns, text.size()) + 2, ' '));
}

std::string ListText() {
  size_t widest = 0;
  for (const AlgorithmInfo& info : AlgorithmTable()) widest = std::max(widest, info.name.size());
  std::string list;
  for (const AlgorithmInfo& info : AlgorithmTable())
    absl::StrAppend(&list, Cell(info.name, widest), info.summary, "\n");
  absl::StrAppend(&list, "\n`muster algorithms NAME` describes one.\n");
  return list;
}

// Returns the default as in the table; for a learning rate "(of worker_rule)" also its value: "(of worker_rule: 0.01)".
std::string StandardText(const AlgorithmInfo& info, const ParameterInfo& parameter) {
  const std::string standard(parameter.standard);
  if (parameter.name != "learning_rate") return standard;
  for (const ParameterInfo& rule : info.parameters) {
    if (rule.kind != ParameterKind::kRule || standard != absl::StrCat("(of ", rule.name, ")")) continue;
    const auto spec = ParseRuleText(rule.standard);
    MUSTER_CHECK(spec.ok());  // it comes from the table
    return absl::StrCat("(of ", rule.name, ": ", spec->learning_rate, ")");
  }
  return standard;
}

std::string ParametersText(const AlgorithmInfo& info) {
  size_t names = 0;
  size_t standards = 0;
  for (const ParameterInfo& parameter : info.parameters) {
    names = std::max(names, parameter.name.size());
    standards = std::max(standards, StandardText(info, parameter).size());
  }
  // A long default (a rule with its hyperparameters) must not shift the meanings of all parameters.
  standards = std::min<size_t>(standards, 24);
  std::string text;
  for (const ParameterInfo& parameter : info.parameters)
    absl::StrAppend(&text, "  --", Cell(parameter.name, names), Cell(StandardText(info, parameter), standards),
                    parameter.meaning, "\n");
  return text;
}

std::string AlgorithmText(const AlgorithmInfo& info) {
  std::string text = absl::StrCat(info.name, ": ", info.summary, "\n\n");
  absl::StrAppend(&text, "Formula (θ̃ the global values, θ a worker's own, θ₀ as pulled last, g gradient, λ window, τ ",
                  "staleness)\n");
  const std::vector<std::string> lines = absl::StrSplit(info.formula, '\n');
  for (const std::string& line : lines) absl::StrAppend(&text, "  ", line, "\n");
  absl::StrAppend(&text, "\nParameters, their defaults and meanings\n", ParametersText(info));
  if (!info.aliases.empty())
    absl::StrAppend(&text, "\nAlso called\n", Wrapped(absl::StrJoin(info.aliases, ", "), "  "));
  absl::StrAppend(&text, "\nReference\n", Wrapped(info.reference, "  "));
  absl::StrAppend(&text, "\nWhen to take it\n", Wrapped(info.advice, "  "));
  if (!info.needs_ps) absl::StrAppend(&text, "\nIt needs a cluster without ps: muster run --ps 0.\n");
  return text;
}

int Run(const CLI::Option& given, const std::string& name) {
  if (given.count() == 0) {
    std::fputs(ListText().c_str(), stdout);
    return 0;
  }
  const AlgorithmInfo* info = FindAlgorithm(name);
  if (info == nullptr) return UsageError("algorithms", UnknownAlgorithm(name));
  std::fputs(AlgorithmText(*info).c_str(), stdout);
  return 0;
}

}  // namespace

void AddAlgorithmsCommand(CLI::App& app, int& exit_code) {
  auto name = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("algorithms", kAlgorithmsDescription);
  const CLI::Option* option = command->add_option("NAME", *name, "An algorithm's name or alias")->type_name("");
  command->footer(kAlgorithmsFooter);
  command->callback([name, option, &exit_code] { exit_code = Run(*option, *name); });
}

}  // namespace muster
