// Tables for terminals. Pure, thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace muster {

// A line a row of `cells`, all with as many as the first, filled up with spaces so that columns are under each other,
// two apart: the first `left` columns at their left ends, the others at their right ends. Nothing is filled up behind a
// line. Cells are UTF-8, a column a character.
std::vector<std::string> AlignedLines(const std::vector<std::vector<std::string>>& cells, size_t left);

}  // namespace muster
