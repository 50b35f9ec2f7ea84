// Cuts a program's output, which comes in arbitrary pieces, into lines. Where carriage returns overwrite a line, as
// progress bars do, only what stood there last is kept. A plain value; not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "muster/launch/output/character_cut.h"

namespace muster {

class LineCutter {
 public:
  // Cuts a line longer than `max_line_bytes` into several, between UTF-8 characters if it is UTF-8, so that a program
  // that never ends its line can't fill the memory.
  explicit LineCutter(size_t max_line_bytes = 64 << 10) : max_line_bytes_(max_line_bytes) {}

  // Calls `take` with every line that `bytes` ends, without its line end ("\n" or "\r\n"); valid during the call.
  template <typename Take>
  void Add(std::string_view bytes, Take&& take) {
    while (!bytes.empty()) {
      const size_t end = bytes.substr(0, max_line_bytes_ + 1).find('\n');
      const std::string_view piece = bytes.substr(0, std::min(end, max_line_bytes_ + 1));
      bytes.remove_prefix(piece.size());
      const bool ends = end != std::string_view::npos;
      if (ends) bytes.remove_prefix(1);
      if (ends && IsWholeLine(piece)) {
        take(piece);
        continue;
      }
      Append(piece);
      while (unfinished_.size() > max_line_bytes_) {
        const size_t cut = CharacterCut(unfinished_, max_line_bytes_);
        take(std::string_view(unfinished_).substr(0, cut));
        unfinished_.erase(0, cut);
      }
      if (ends) End(take);
    }
  }

  // Must be called at the end of the output: an unfinished line counts as one.
  template <typename Take>
  void Finish(Take&& take) {
    if (!unfinished_.empty()) End(take);
  }

  // What stands now in an unfinished line that was overwritten; empty if there is no such line.
  std::string_view overwritten() const { return overwritten_ ? std::string_view(unfinished_) : std::string_view(); }

 private:
  // The usual case, which copies nothing.
  bool IsWholeLine(std::string_view piece) const {
    return unfinished_.empty() && !returned_ && piece.size() <= max_line_bytes_ &&
           piece.find('\r') == std::string_view::npos;
  }
  // Adds text of one line. What stands before a carriage return is gone only when something is written over it.
  void Append(std::string_view text) {
    const size_t last = text.find_last_not_of('\r');
    if (last == std::string_view::npos) {
      returned_ = returned_ || !text.empty();
      return;
    }
    const bool returns = last + 1 < text.size();
    text = text.substr(0, last + 1);
    const size_t start = text.rfind('\r');
    if (returned_ || start != std::string_view::npos) {
      unfinished_.clear();
      overwritten_ = true;
    }
    unfinished_ += start == std::string_view::npos ? text : text.substr(start + 1);
    returned_ = returns;
  }
  template <typename Take>
  void End(Take& take) {
    take(std::string_view(unfinished_));
    unfinished_.clear();
    returned_ = overwritten_ = false;
  }

  size_t max_line_bytes_;
  std::string unfinished_;    // at most max_line_bytes_, without the carriage returns at its end
  bool returned_ = false;     // it had some
  bool overwritten_ = false;  // something stood there before
};

}  // namespace muster
