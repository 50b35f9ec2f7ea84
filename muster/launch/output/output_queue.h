// Writes whole lines to stdout or stderr without ever blocking, so that a stopped terminal or an idle pager can't keep
// the launcher from noticing Ctrl-C. Not thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "muster/launch/system/fd_loop.h"

namespace muster {

class OutputQueue {
 public:
  // Borrows the loop, which must outlive it, and the descriptor.
  OutputQueue(FdLoop& loop, int fd) : loop_(loop), fd_(fd) {}
  ~OutputQueue();
  OutputQueue(const OutputQueue&) = delete;
  OutputQueue& operator=(const OutputQueue&) = delete;

  // Queues text, which later rounds of the loop write. Drops it if the reader has gone.
  void Put(std::string_view text);

  // Bytes that wait to be written.
  size_t bytes() const { return bytes_; }

 private:
  void WriteSome();
  // Returns false if nothing could be written now.
  bool WriteOnce();

  // Constant after construction.
  FdLoop& loop_;
  const int fd_;

  std::deque<std::string> pieces_;
  size_t written_ = 0;  // of the first piece
  size_t bytes_ = 0;
  bool gone_ = false;
};

}  // namespace muster
