// Tables for terminals. Pure, thread-safe.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace muster {

inline constexpr size_t kAllColumns = std::numeric_limits<size_t>::max();

// A line a row of `cells`, filled up with spaces so that columns are under each other, two apart: the first `left`
// columns at their left ends, the others at their right ends. Nothing is filled up behind a line. Cells are UTF-8, a
// column a character; control characters in them are shown as \xNN (OneLine).
std::vector<std::string> AlignedLines(std::vector<std::vector<std::string>> cells, size_t left = kAllColumns);

// The same as one text: each line with its end.
std::string AlignedText(std::vector<std::vector<std::string>> cells, size_t left = kAllColumns);

}  // namespace muster
