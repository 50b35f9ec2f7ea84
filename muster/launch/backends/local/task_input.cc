#include "muster/launch/backends/local/task_input.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "muster/base/os/uninterrupted.h"

namespace muster {

TaskInput::TaskInput(FdLoop& loop, int fd) : loop_(loop), fd_(fd) {
  loop_.Watch(fd_, 0, [this](short) { Write(); });
}

TaskInput::~TaskInput() { Close(); }

void TaskInput::Add(std::string_view bytes) {
  if (fd_ < 0 || ended_) return;
  // What has been written goes before it becomes the larger part, so that a byte is moved once on average.
  if (written_ > kept_.size() / 2) kept_.erase(0, std::exchange(written_, 0));
  kept_ += bytes;
  ended_ = bytes.empty();
  Write();
}

void TaskInput::Write() {
  while (waiting() > 0) {
    const ssize_t put = Uninterrupted([&] { return write(fd_, kept_.data() + written_, waiting()); });
    if (put < 0 && errno == EAGAIN) return loop_.SetEvents(fd_, POLLOUT);
    if (put < 0) return Close();  // the program has closed its stdin
    written_ += put;
  }
  kept_.clear();
  written_ = 0;
  if (ended_) return Close();
  loop_.SetEvents(fd_, 0);
}

void TaskInput::Close() {
  if (fd_ < 0) return;
  loop_.Forget(fd_);
  close(std::exchange(fd_, -1));
  kept_.clear();
  written_ = 0;
}

}  // namespace muster
