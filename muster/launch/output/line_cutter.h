// Cuts a program's output, which comes in arbitrary pieces, into lines. A plain value; not thread-safe.
#pragma once

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
      const size_t room = max_line_bytes_ - unfinished_.size();
      const size_t end = bytes.substr(0, room + 1).find('\n');
      if (end != std::string_view::npos) {
        End(bytes.substr(0, end), take);
        bytes.remove_prefix(end + 1);
        continue;
      }
      unfinished_ += bytes.substr(0, room + 1);
      if (bytes.size() <= room) return;
      bytes.remove_prefix(room + 1);
      const size_t cut = CharacterCut(unfinished_, max_line_bytes_);
      take(std::string_view(unfinished_).substr(0, cut));
      unfinished_.erase(0, cut);
    }
  }

  // Must be called at the end of the output: an unfinished line counts as one.
  template <typename Take>
  void Finish(Take&& take) {
    if (!unfinished_.empty()) End({}, take);
  }

 private:
  template <typename Take>
  void End(std::string_view rest, Take& take) {
    std::string_view line = rest;
    if (!unfinished_.empty()) {
      unfinished_ += rest;
      line = unfinished_;
    }
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    take(line);
    unfinished_.clear();
  }

  size_t max_line_bytes_;
  std::string unfinished_;  // at most max_line_bytes_
};

}  // namespace muster
