// This process's own environment, for commands that start or look for programs as its shell would.
#pragma once

#include <unistd.h>

#include <string>
#include <string_view>

namespace muster {

// The variable's value; empty if it isn't set.
inline std::string OwnVariable(std::string_view name) {
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (text.starts_with(name) && text.substr(name.size()).starts_with('='))
      return std::string(text.substr(name.size() + 1));
  }
  return "";
}

}  // namespace muster
