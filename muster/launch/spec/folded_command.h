// The command that the author of a folded YAML text (`run: >-`) meant. YAML keeps the line ends of lines that are
// indented deeper than the first, so that arguments written below each other would be commands of their own. Stateless,
// thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

// Returns `text`, a folded text as YAML reads it, with two kinds of lines joined to the line before: those that begin
// with '-', and those after a line that ends with a backslash, which goes. `source`: the lines of the file below the
// one with the '>'; what follows the text is ignored.
std::string FoldedCommand(std::string_view text, const std::vector<std::string_view>& source);

}  // namespace muster
