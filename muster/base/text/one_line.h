// Prints text from outside in a place with room for one line: an error message, a table's cell. Pure, thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

// Replaces control characters by \xNN, so that they can break neither the line nor the terminal that shows it.
// Everything else stays as it is. A text longer than `most` bytes is cut there, and ends in "…".
std::string OneLine(std::string_view text, size_t most = std::string_view::npos);

}  // namespace muster
