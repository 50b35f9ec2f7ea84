// Standard output for lines that come as fast as a disk gives them. A wish to stop is heard while nobody reads (a
// terminal that is held, a pager), and a reader who has gone (| head) ends it in silence. Not thread-safe; one at a
// time in a process, as it ignores SIGPIPE while it lives.
#pragma once

#include <signal.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace muster {

class LogOutput {
 public:
  // `stop_fd`: readable when nothing more is to be written; -1: never.
  explicit LogOutput(int stop_fd);
  ~LogOutput();
  LogOutput(const LogOutput&) = delete;
  LogOutput& operator=(const LogOutput&) = delete;

  // A line, without its end. Blocks when much is waiting for the reader, until it can be written or done().
  void Put(std::string_view line);
  // Until all is written, or done().
  void Flush();

  // Nothing more will be written: stopped, nobody there to read, or an error.
  bool done() const { return done_; }
  // The reader has gone: found out without writing.
  void NoteGone() { done_ = true; }
  const absl::Status& status() const { return status_; }

 private:
  void WriteSome();

  const int stop_fd_;
  struct sigaction before_ = {};  // what SIGPIPE did

  std::string waiting_;
  size_t written_ = 0;  // of it
  bool done_ = false;
  absl::Status status_;
};

}  // namespace muster
