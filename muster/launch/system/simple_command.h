// Tells commands that a shell can become (`exec`) from those that need a shell around them. Stateless, thread-safe.
#pragma once

#include <string_view>

namespace muster {

// Returns whether `command` is one program with its arguments and redirections, so that `exec COMMAND` does the same:
// one line, no operators, no builtin of the shell, nothing that is assigned. False also when in doubt.
bool IsSimpleCommand(std::string_view command);

}  // namespace muster
