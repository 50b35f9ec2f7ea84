#include "muster/launch/watch/live_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr char kHideCursor[] = "\x1b[?25l";
constexpr char kShowCursor[] = "\x1b[?25h";
constexpr char kClearScreen[] = "\x1b[H\x1b[2J";
// Comes before a line: after one as wide as the terminal it would erase the last character.
constexpr char kClearLine[] = "\x1b[K";
constexpr char kClearBelow[] = "\x1b[J";

}  // namespace

std::string CutAt(std::string_view text, size_t columns) {
  size_t bytes = 0;
  for (size_t seen = 0; bytes < text.size(); ++bytes) {
    const bool begins = (static_cast<unsigned char>(text[bytes]) & 0xC0) != 0x80;
    if (begins && seen == columns) break;
    if (begins) ++seen;
  }
  return std::string(text.substr(0, bytes));
}

std::string LiveText::Draw(const std::vector<std::string>& lines, const TerminalSize& size) {
  std::string text = drawn_ ? "" : kHideCursor;
  if (drawn_ && size != size_) {
    text += kClearScreen;
  } else if (lines_ > 0) {
    absl::StrAppend(&text, "\r\x1b[", lines_, "A");
  }
  // The cursor is on the line below the last.
  const size_t room = std::max<size_t>(size.rows, 2) - 1;
  const size_t shown = lines.size() <= room ? lines.size() : room - 1;
  for (size_t i = 0; i < shown; ++i) absl::StrAppend(&text, kClearLine, CutAt(lines[i], size.columns), "\n");
  if (shown < lines.size())
    absl::StrAppend(&text, kClearLine, CutAt(absl::StrCat("… ", lines.size() - shown, " more"), size.columns), "\n");
  text += kClearBelow;
  drawn_ = true;
  lines_ = std::min(lines.size(), room);
  size_ = size;
  return text;
}

std::string LiveText::End() {
  if (!drawn_) return "";
  drawn_ = false;
  lines_ = 0;
  return kShowCursor;
}

}  // namespace muster
