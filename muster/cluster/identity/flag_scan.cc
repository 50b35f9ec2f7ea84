#include "muster/cluster/identity/flag_scan.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

using FindFlag = absl::FunctionRef<std::optional<KnownFlag>(const std::string& name)>;

// Returns the flag of a word --name or --name=value; nullopt for any other word.
std::optional<KnownFlag> FlagOf(const std::string& word, FindFlag find) {
  if (!absl::StartsWith(word, "--")) return std::nullopt;
  return find(word.substr(2, word.find('=') - 2));
}

absl::Status NoValue(const KnownFlag& flag) {
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag.name, " has no value; accepted: --", flag.name, "=", flag.accepted));
}

absl::Status CheckValue(const KnownFlag& flag, const std::string& value) {
  return value.empty() && !flag.may_be_empty ? NoValue(flag) : absl::OkStatus();
}

}  // namespace

absl::StatusOr<FlagScan> ScanFlags(const std::vector<std::string>& arguments, FindFlag find) {
  FlagScan scan;
  size_t i = 0;
  for (; i < arguments.size() && arguments[i] != "--"; ++i) {
    const std::string& word = arguments[i];
    const size_t equals = word.find('=');
    const std::optional<KnownFlag> flag = FlagOf(word, find);
    if (!flag) {
      scan.kept.push_back(i);
    } else if (equals != std::string::npos) {
      scan.given.push_back({flag->name, word.substr(equals + 1)});
    } else if (flag->is_switch) {
      scan.given.push_back({flag->name, "1"});
    } else if (i + 1 < arguments.size() && !absl::StartsWith(arguments[i + 1], "--")) {
      scan.given.push_back({flag->name, arguments[++i]});
    } else {
      return NoValue(*flag);
    }
    if (flag) RETURN_IF_ERROR(CheckValue(*flag, scan.given.back().value));
  }
  for (; i < arguments.size(); ++i) scan.kept.push_back(i);
  return scan;
}

absl::StatusOr<std::vector<std::string>> SplitEmptyValues(const std::vector<std::string>& arguments, FindFlag find) {
  std::vector<std::string> words;
  size_t i = 0;
  for (; i < arguments.size() && arguments[i] != "--"; ++i) {
    const std::string& word = arguments[i];
    const size_t equals = word.find('=');
    const std::optional<KnownFlag> flag = FlagOf(word, find);
    words.push_back(word);
    if (!flag || flag->is_switch) continue;
    if (equals == std::string::npos) {
      if (++i == arguments.size()) break;
      words.push_back(arguments[i]);
    } else if (equals + 1 == word.size()) {
      words.back().pop_back();
      words.emplace_back();
    } else {
      continue;
    }
    RETURN_IF_ERROR(CheckValue(*flag, words.back()));
  }
  for (; i < arguments.size(); ++i) words.push_back(arguments[i]);
  return words;
}

std::vector<std::string> ArgumentsOf(int argc, char** argv) { return {argv + (argc > 0 ? 1 : 0), argv + argc}; }

void KeepArguments(const std::vector<size_t>& kept, std::vector<std::string>& arguments) {
  std::vector<std::string> rest;
  for (const size_t i : kept) rest.push_back(std::move(arguments[i]));
  arguments = std::move(rest);
}

void KeepArguments(const std::vector<size_t>& kept, int& argc, char** argv) {
  int count = argc > 0 ? 1 : 0;
  for (const size_t i : kept) argv[count++] = argv[i + 1];
  argc = count;
  argv[argc] = nullptr;
}

}  // namespace muster
