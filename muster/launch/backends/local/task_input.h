// The stdin of a task that takes input: a pipe that is written as the program reads it. What the pipe doesn't take is
// kept and written from the loop, so nobody waits for a program. SIGPIPE must be ignored. Used by the loop's thread.
#pragma once

#include <string>
#include <string_view>

#include "muster/launch/system/fd_loop.h"

namespace muster {

class TaskInput {
 public:
  // Takes over `fd`, the non-blocking writing end. Borrows `loop`, which must outlive it.
  TaskInput(FdLoop& loop, int fd);
  ~TaskInput();
  TaskInput(const TaskInput&) = delete;
  TaskInput& operator=(const TaskInput&) = delete;

  // Empty: the end of the input. What comes after it, or after the program has closed its stdin, is dropped.
  void Add(std::string_view bytes);
  // Bytes that the pipe hasn't taken.
  size_t waiting() const { return kept_.size() - written_; }

 private:
  void Write();
  void Close();

  FdLoop& loop_;
  int fd_;            // -1: closed
  std::string kept_;  // from `written_` on
  size_t written_ = 0;
  bool ended_ = false;
};

}  // namespace muster
