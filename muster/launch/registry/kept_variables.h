// Which variables of the user's shell the registry keeps: only those that are listed as harmless. All others, such as
// keys and passwords, stay in the memory of the processes that need them. Stateless, thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

// Returns whether a variable of this name may be stored (docs/experiments/registry.md, "Kept variables").
bool IsKeptVariable(std::string_view name);

// Returns those of `environment` ("NAME=VALUE") that may be stored.
std::vector<std::string> KeptVariables(const std::vector<std::string>& environment);

// Returns `environment` with the values of `kept` for the variables in both, and with the others of `kept`.
std::vector<std::string> WithKeptVariables(const std::vector<std::string>& environment,
                                           const std::vector<std::string>& kept);

}  // namespace muster
