// Tables for terminals. Pure, thread-safe.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace muster {

inline constexpr size_t kAllColumns = std::numeric_limits<size_t>::max();

// Returns one line per row of `cells`, padded with spaces so that columns line up, two spaces apart. The first `left`
// columns are left-aligned, the others right-aligned. Lines have no trailing spaces. Cells are UTF-8, one column per
// character; control characters in them are shown as \xNN (OneLine).
std::vector<std::string> AlignedLines(std::vector<std::vector<std::string>> cells, size_t left = kAllColumns);

// Returns the same as one text; each line ends with a line break.
std::string AlignedText(std::vector<std::vector<std::string>> cells, size_t left = kAllColumns);

}  // namespace muster
