#include "muster/launch/registry/kept_variables.h"

#include <algorithm>
#include <array>
#include <map>

#include "absl/strings/ascii.h"
#include "muster/base/absl_view.h"

namespace muster {
namespace {

// What programs find their files, libraries, languages and devices by. The page registry.md has the same list.
constexpr std::array<std::string_view, 17> kKeptNames = {"PATH",
                                                         "HOME",
                                                         "USER",
                                                         "LOGNAME",
                                                         "SHELL",
                                                         "TERM",
                                                         "LANG",
                                                         "LANGUAGE",
                                                         "TZ",
                                                         "TMPDIR",
                                                         "VIRTUAL_ENV",
                                                         "CONDA_PREFIX",
                                                         "CONDA_DEFAULT_ENV",
                                                         "LD_LIBRARY_PATH",
                                                         "PYTHONPATH",
                                                         "PYTHONHOME",
                                                         "PYTHONHASHSEED"};
constexpr std::array<std::string_view, 9> kKeptBeginnings = {"LC_",  "CUDA_",     "OMP_",  "GOMP_",  "KMP_",
                                                             "MKL_", "OPENBLAS_", "NCCL_", "NVIDIA_"};
// Words in names that promise a secret, whatever the name begins with.
constexpr std::array<std::string_view, 6> kSecretWords = {"KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "AUTH"};

std::string_view NameIn(std::string_view variable) { return variable.substr(0, variable.find('=')); }

}  // namespace

bool IsKeptVariable(std::string_view name) {
  const std::string in_capitals = absl::AsciiStrToUpper(AbslView(name));
  const auto is_in_name = [&in_capitals](std::string_view word) { return in_capitals.find(word) != std::string::npos; };
  if (std::any_of(kSecretWords.begin(), kSecretWords.end(), is_in_name)) return false;
  return std::find(kKeptNames.begin(), kKeptNames.end(), name) != kKeptNames.end() ||
         std::any_of(kKeptBeginnings.begin(), kKeptBeginnings.end(),
                     [name](std::string_view beginning) { return name.starts_with(beginning); });
}

std::vector<std::string> KeptVariables(const std::vector<std::string>& environment) {
  std::vector<std::string> kept;
  for (const std::string& variable : environment)
    if (IsKeptVariable(NameIn(variable))) kept.push_back(variable);
  return kept;
}

std::vector<std::string> WithKeptVariables(const std::vector<std::string>& environment,
                                           const std::vector<std::string>& kept) {
  std::map<std::string, std::string, std::less<>> variables;
  for (const auto* list : {&environment, &kept})
    for (const std::string& variable : *list) variables[std::string(NameIn(variable))] = variable;
  std::vector<std::string> all;
  for (const auto& [name, variable] : variables) all.push_back(variable);
  return all;
}

}  // namespace muster
