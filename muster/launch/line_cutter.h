// Cuts what a program writes into lines, whatever the pieces in which it comes. A plain value; not thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

class LineCutter {
 public:
  // A longer line is cut into several, so that a program that never ends one can't fill the memory.
  explicit LineCutter(size_t max_line_bytes = 64 << 10) : max_line_bytes_(max_line_bytes) {}

  // Calls `take` with every line that `bytes` ends, without its line end ("\n" or "\r\n"); valid during the call.
  template <typename Take>
  void Add(std::string_view bytes, Take&& take) {
    while (!bytes.empty()) {
      const size_t room = max_line_bytes_ - unfinished_.size();
      const size_t end = bytes.substr(0, room + 1).find('\n');
      const bool cut = end == std::string_view::npos;
      if (cut && bytes.size() <= room) {
        unfinished_ += bytes;
        return;
      }
      const size_t length = cut ? room : end;
      Give(bytes.substr(0, length), !cut, take);
      bytes.remove_prefix(cut ? length : length + 1);
    }
  }

  // There is no more: what is unfinished counts as a line.
  template <typename Take>
  void Finish(Take&& take) {
    if (!unfinished_.empty()) Give({}, true, take);
  }

 private:
  template <typename Take>
  void Give(std::string_view rest, bool ended, Take& take) {
    std::string_view line = rest;
    if (!unfinished_.empty()) {
      unfinished_ += rest;
      line = unfinished_;
    }
    if (ended && !line.empty() && line.back() == '\r') line.remove_suffix(1);
    take(line);
    unfinished_.clear();
  }

  size_t max_line_bytes_;
  std::string unfinished_;
};

}  // namespace muster
