#include "muster/launch/spec/key_check.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/text/nearest_name.h"
#include "muster/cluster/quoted.h"
#include "muster/launch/task/resources.h"

namespace muster {
namespace {

constexpr size_t kLongestPatternText = 4096;  // std::regex recurses once per character

bool HasScalarForm(const YamlNode& node, const KeyForm& form) {
  switch (form.kind) {
    case FormKind::kText:
      return !node.text.empty();
    case FormKind::kAnyText:
      return true;
    case FormKind::kPattern:
      return node.text.size() <= kLongestPatternText && std::regex_search(node.text, std::regex(form.pattern));
    case FormKind::kWord:
      return std::find(form.words.begin(), form.words.end(), node.text) != form.words.end();
    case FormKind::kWhole: {
      const auto number = WholeOf(node);
      return number && *number >= form.least && *number <= form.most;
    }
    case FormKind::kPositive:
      return NumberOf(node).value_or(0) > 0;
    case FormKind::kNumber:
      return NumberOf(node).has_value();
    case FormKind::kTruth:
      return TruthOf(node).has_value();
    case FormKind::kMemory:
      return ParseMemory(node.text, nullptr).ok();
    case FormKind::kDuration:
      return DurationOf(node).has_value();
    case FormKind::kNothing:
    case FormKind::kList:
    case FormKind::kNames:
    case FormKind::kSection:
      return false;
    case FormKind::kAnything:
      return true;
  }
  return false;
}

// Returns "is a list", "is \"0\"".
std::string WhatItIs(const YamlNode& node) {
  switch (node.kind) {
    case YamlKind::kEmpty:
      return "has no value";
    case YamlKind::kList:
      return node.items.empty() ? "is an empty list" : "is a list";
    case YamlKind::kMap:
      return "is a map";
    case YamlKind::kScalar:
      break;
  }
  double number = 0;
  const bool misleading = node.quoted && absl::SimpleAtod(node.text, &number);
  return absl::StrCat("is ", Quoted(node.text), misleading ? " in quotes, which is text" : "");
}

const KeyForm* FormOfKind(const std::vector<KeyForm>& forms, FormKind kind) {
  const auto found =
      std::find_if(forms.begin(), forms.end(), [kind](const KeyForm& form) { return form.kind == kind; });
  return found == forms.end() ? nullptr : &*found;
}

void CheckForms(const YamlNode& node, const std::vector<KeyForm>& forms, const std::string& path,
                FileMistakes& mistakes);

// Returns "train.run"; quotes unusual keys, so that they can't add lines to a message.
std::string BelowPath(const std::string& path, const std::string& key) {
  const bool plain = !key.empty() && key.size() <= 100 && std::all_of(key.begin(), key.end(), absl::ascii_isgraph);
  return absl::StrCat(path, path.empty() ? "" : ".", plain ? key : Quoted(key));
}

// Adds a mistake for each duplicate key of a map.
void CheckTwice(const YamlNode& node, const std::string& path, FileMistakes& mistakes) {
  std::map<std::string, int> lines;
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const auto [first, is_new] = lines.emplace(node.keys[i], node.items[i].line);
    if (!is_new)
      mistakes.Add(node.items[i].line, BelowPath(path, node.keys[i]),
                   absl::StrCat("is there twice, first in line ", first->second), "each key once");
  }
}

void CheckTwiceBelow(const YamlNode& node, const std::string& path, FileMistakes& mistakes) {
  if (node.kind == YamlKind::kMap) CheckTwice(node, path, mistakes);
  for (size_t i = 0; i < node.items.size(); ++i)
    CheckTwiceBelow(node.items[i], node.kind == YamlKind::kMap ? BelowPath(path, node.keys[i]) : path, mistakes);
}

// Checks the contents of lists and maps; any other value must match one of the forms.
void CheckForms(const YamlNode& node, const std::vector<KeyForm>& forms, const std::string& path,
                FileMistakes& mistakes) {
  if (node.kind == YamlKind::kScalar) {
    for (const KeyForm& form : forms)
      if (HasScalarForm(node, form)) return;
  }
  if (node.kind == YamlKind::kEmpty && FormOfKind(forms, FormKind::kNothing) != nullptr) return;
  const KeyForm* list = FormOfKind(forms, FormKind::kList);
  if (node.kind == YamlKind::kList && list != nullptr && !node.items.empty()) {
    for (size_t i = 0; i < node.items.size(); ++i)
      CheckForms(node.items[i], list->of, absl::StrCat(path, "[", i + 1, "]"), mistakes);
    return;
  }
  const KeyForm* section = FormOfKind(forms, FormKind::kSection);
  if (node.kind == YamlKind::kMap && section != nullptr)
    return CheckKeys(node, ExperimentKeySection(section->section), path, mistakes);
  const KeyForm* names = FormOfKind(forms, FormKind::kNames);
  if (node.kind == YamlKind::kMap && names != nullptr) {
    CheckTwice(node, path, mistakes);
    for (size_t i = 0; i < node.keys.size(); ++i)
      CheckForms(node.items[i], names->of, BelowPath(path, node.keys[i]), mistakes);
    return;
  }
  if (FormOfKind(forms, FormKind::kAnything) != nullptr) return CheckTwiceBelow(node, path, mistakes);
  const KeyForm* words = FormOfKind(forms, FormKind::kWord);
  const bool misspelt = words != nullptr && node.kind == YamlKind::kScalar;
  mistakes.Add(node.line, path, absl::StrCat(WhatItIs(node), misspelt ? NearestHint(node.text, words->words) : ""),
               AcceptedText(forms));
}

bool HasKey(const KeySection& section, const std::string& key) {
  return std::any_of(section.keys.begin(), section.keys.end(), [&key](const KeyRow& row) { return row.name == key; });
}

// Returns where a key belongs that there isn't in the section at `path`: a slip of the indentation, mostly.
std::string WhereItBelongs(const std::string& key, const std::string& path, const KeySection& section) {
  if (!path.empty() && HasKey(ExperimentKeySection(kFileSection), key))
    return " here: it belongs at the top of the file";
  if (path.empty() && HasKey(ExperimentKeySection("train"), key)) return " here: it belongs below train";
  return NearestHint(key, section.Names());
}

}  // namespace

void CheckKeys(const YamlNode& node, const KeySection& section, const std::string& path, FileMistakes& mistakes) {
  CheckTwice(node, path, mistakes);
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const std::string& key = node.keys[i];
    const auto row = std::find_if(section.keys.begin(), section.keys.end(),
                                  [&key](const KeyRow& candidate) { return candidate.name == key; });
    if (row != section.keys.end()) {
      CheckForms(node.items[i], row->forms, BelowPath(path, key), mistakes);
    } else {
      mistakes.Add(node.items[i].line, BelowPath(path, key),
                   absl::StrCat("there is no such key", WhereItBelongs(key, path, section)),
                   absl::StrJoin(section.Names(), ", "));
    }
  }
  for (const KeyRow& row : section.keys)
    if (row.required() && node.Find(row.name) == nullptr)
      mistakes.Add(node.line, BelowPath(path, row.name), "is missing", row.Accepted());
}

std::optional<int64_t> WholeOf(const YamlNode& node) {
  int64_t number = 0;
  if (node.kind != YamlKind::kScalar || node.quoted || !absl::SimpleAtoi(node.text, &number)) return std::nullopt;
  return number;
}

std::optional<double> NumberOf(const YamlNode& node) {
  double number = 0;
  if (node.kind != YamlKind::kScalar || node.quoted || !absl::SimpleAtod(node.text, &number)) return std::nullopt;
  if (!std::isfinite(number)) return std::nullopt;
  return number;
}

std::optional<bool> TruthOf(const YamlNode& node) {
  if (node.kind != YamlKind::kScalar || node.quoted) return std::nullopt;
  const std::string word = absl::AsciiStrToLower(node.text);
  if (word == "true" || word == "yes" || word == "on") return true;
  if (word == "false" || word == "no" || word == "off") return false;
  return std::nullopt;
}

std::optional<absl::Duration> DurationOf(const YamlNode& node) {
  if (node.kind != YamlKind::kScalar) return std::nullopt;
  absl::Duration duration;
  if (const auto seconds = NumberOf(node)) {
    duration = absl::Seconds(*seconds);
  } else if (!absl::ParseDuration(node.text, &duration)) {
    return std::nullopt;
  }
  if (duration < absl::ZeroDuration() || duration > absl::Hours(24)) return std::nullopt;
  return duration;
}

}  // namespace muster
