#include "muster/base/text/environment_list.h"

namespace muster {

bool IsVariable(std::string_view variable, std::string_view name) {
  return variable.starts_with(name) && variable.substr(name.size()).starts_with('=');
}

std::optional<std::string> FindVariableIn(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string& variable : environment)
    if (IsVariable(variable, name)) return variable.substr(name.size() + 1);
  return std::nullopt;
}

std::string VariableIn(const std::vector<std::string>& environment, std::string_view name) {
  return FindVariableIn(environment, name).value_or("");
}

}  // namespace muster
