#include "muster/cluster/identity/flag_scan.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace muster {

absl::StatusOr<FlagScan> ScanFlags(const std::vector<std::string>& arguments,
                                   absl::FunctionRef<std::optional<KnownFlag>(const std::string& name)> find) {
  FlagScan scan;
  size_t i = 0;
  for (; i < arguments.size() && arguments[i] != "--"; ++i) {
    const std::string& word = arguments[i];
    const size_t equals = word.find('=');
    std::optional<KnownFlag> flag;
    if (absl::StartsWith(word, "--")) flag = find(word.substr(2, equals == std::string::npos ? equals : equals - 2));
    if (!flag) {
      scan.kept.push_back(i);
    } else if (equals != std::string::npos) {
      scan.given.push_back({flag->name, word.substr(equals + 1)});
    } else if (flag->is_switch) {
      scan.given.push_back({flag->name, "1"});
    } else if (i + 1 < arguments.size() && !absl::StartsWith(arguments[i + 1], "--")) {
      scan.given.push_back({flag->name, arguments[++i]});
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("--", flag->name, " has no value; accepted: --", flag->name, "=", flag->accepted));
    }
  }
  for (; i < arguments.size(); ++i) scan.kept.push_back(i);
  return scan;
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
