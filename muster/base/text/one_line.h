// Prints text from outside in a place with room for one line: an error message, a table's cell. Pure, thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace muster {

// Replaces control characters by \xNN, so that they can break neither the line nor the terminal that shows it.
// Everything else stays as it is.
std::string OneLine(std::string_view text);

}  // namespace muster
