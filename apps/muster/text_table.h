// A table for the terminal: columns as wide as their widest cell. Not thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

class TextTable {
 public:
  explicit TextTable(std::vector<std::string> headings) : rows_({std::move(headings)}) {}

  // As many cells as there are headings. Control characters become \xNN.
  void Add(const std::vector<std::string>& cells);
  // A line each, the headings first; two spaces between columns, none at the end of a line.
  std::string ToString() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// One line for a terminal whatever is in it: control characters become \xNN.
std::string OneLine(std::string_view text);

}  // namespace muster
