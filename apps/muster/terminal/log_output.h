// Standard output for lines that come as fast as a disk delivers them. A request to stop is noticed even while nobody
// reads (a stopped terminal, a pager), and a closed reader (| head) ends the output silently. Not thread-safe; one at a
// time per process, because it ignores SIGPIPE while it lives.
#pragma once

#include <signal.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace muster {

class LogOutput {
 public:
  // `stop_fd`: readable when no more must be written; -1: never.
  explicit LogOutput(int stop_fd);
  ~LogOutput();
  LogOutput(const LogOutput&) = delete;
  LogOutput& operator=(const LogOutput&) = delete;

  // Writes a line, without its end. Blocks while much is waiting for the reader, until it can be written or done().
  void Put(std::string_view line);
  // Blocks until all is written, or done().
  void Flush();

  // Returns whether nothing more will be written: stopped, no reader, or an error.
  bool done() const { return done_; }
  // Must be called when the reader has gone, if that was noticed without writing.
  void NoteGone() { done_ = true; }
  const absl::Status& status() const { return status_; }

 private:
  void WriteSome();

  const int stop_fd_;
  struct sigaction before_ = {};  // previous handler of SIGPIPE

  std::string waiting_;
  size_t written_ = 0;  // of it
  bool done_ = false;
  absl::Status status_;
};

}  // namespace muster
