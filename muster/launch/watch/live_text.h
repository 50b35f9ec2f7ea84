// Redraws lines on a terminal in place. Only makes the text to write; does no input or output. Not thread-safe.
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
  // Replaces the lines drawn last, cutting `lines` to the terminal's width and height (the last line then says how many
  // are missing). Clears a terminal whose size has changed, because it has wrapped the old lines in its own way.
  std::string Draw(const std::vector<std::string>& lines, const TerminalSize& size);

  // Undoes what Draw changed in the terminal; the lines stay. Empty if nothing was drawn.
  std::string End();

 private:
  bool drawn_ = false;
  size_t lines_ = 0;  // above the cursor
  TerminalSize size_;
};

// Returns the first `columns` characters of UTF-8 text.
std::string CutAt(std::string_view text, size_t columns);

}  // namespace muster
