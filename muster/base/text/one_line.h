// What the world wrote, for a place that has one line for it: an error message, a table's cell. Pure, thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace muster {

// Control characters become \xNN, so that neither the line nor the terminal that shows it can be broken; the rest stays
// as it is.
std::string OneLine(std::string_view text);

}  // namespace muster
