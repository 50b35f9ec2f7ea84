// Prints text from outside in a place with room for one line: an error message, a table's cell. Pure, thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

// Replaces control characters by \xNN, so that they can break neither the line nor the terminal that shows it.
// Everything else stays as it is. Of a text longer than `most` bytes only the beginning is shown, followed by "…".
std::string OneLine(std::string_view text, size_t most = std::string_view::npos);

}  // namespace muster
