// Lines on a terminal that are drawn over themselves again and again. Makes the text to be written; reads and writes
// nothing. Not thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

struct TerminalSize {
  size_t columns = 80, rows = 24;

  bool operator==(const TerminalSize&) const = default;
};

class LiveText {
 public:
  // `lines` in place of those drawn last, cut at the terminal's width, and at its height (the last line then says how
  // many are missing). A terminal of another size than last has folded the old lines in its own way: it is cleared.
  std::string Draw(const std::vector<std::string>& lines, const TerminalSize& size);

  // What Draw has changed of the terminal, back; the lines stay. Nothing if nothing was drawn.
  std::string End();

 private:
  bool drawn_ = false;
  size_t lines_ = 0;  // above the cursor
  TerminalSize size_;
};

// The first `columns` characters of UTF-8.
std::string CutAt(std::string_view text, size_t columns);

}  // namespace muster
