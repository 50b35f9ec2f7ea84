// Text for terminals, whatever is in it. Pure, thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

// On one line: control characters become \xNN.
std::string OneLine(std::string_view text);

// A line a row, the headings' first, all with as many cells: each OneLine, columns under each other at their left ends.
std::string TextTable(std::vector<std::vector<std::string>> rows);

}  // namespace muster
