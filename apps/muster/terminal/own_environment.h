// This process's own environment, for commands that start or find programs as its shell would. Read anew by each call;
// thread-safe while nobody changes it.
#pragma once

#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#include "muster/base/text/environment_list.h"

namespace muster {

// Returns all variables as "NAME=VALUE".
inline std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) environment.emplace_back(*variable);
  return environment;
}

// Returns the variable's value; empty if it isn't set.
inline std::string OwnVariable(std::string_view name) { return VariableIn(OwnEnvironment(), name); }

}  // namespace muster
