// This process's own environment, for commands that start or find programs as its shell would. Read anew by each call;
// thread-safe while nobody changes it.
#pragma once

#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

namespace muster {

// Returns all variables as "NAME=VALUE".
inline std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) environment.emplace_back(*variable);
  return environment;
}

// Returns the value of the first variable of that name in `environment` ("NAME=VALUE"); empty if it is missing.
inline std::string VariableIn(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string_view variable : environment) {
    if (variable.starts_with(name) && variable.substr(name.size()).starts_with('='))
      return std::string(variable.substr(name.size() + 1));
  }
  return "";
}

// Returns the variable's value; empty if it isn't set.
inline std::string OwnVariable(std::string_view name) { return VariableIn(OwnEnvironment(), name); }

}  // namespace muster
