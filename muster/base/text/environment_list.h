// Reads environments, which are lists of "NAME=VALUE" as execve(2) takes them. Pure, thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// Returns whether `variable`, a "NAME=VALUE", has that name.
bool IsVariable(std::string_view variable, std::string_view name);

// Returns the value of the first variable of that name, as getenv(3) does; nullopt: there is none.
std::optional<std::string> FindVariableIn(const std::vector<std::string>& environment, std::string_view name);

// Returns the same for those to whom a missing variable is an empty one.
std::string VariableIn(const std::vector<std::string>& environment, std::string_view name);

}  // namespace muster
