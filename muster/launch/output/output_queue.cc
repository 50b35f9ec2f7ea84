#include "muster/launch/output/output_queue.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace muster {
namespace {

// Text is appended to the last piece up to this size, so that a burst of lines costs few writes.
constexpr size_t kPieceBytes = 64 << 10;
// In one round of the loop: a pipe's whole capacity. A round costs more than a write.
constexpr size_t kMostWrites = 16;

bool IsWritable(int fd) {
  pollfd one = {.fd = fd, .events = POLLOUT, .revents = 0};
  return poll(&one, 1, 0) == 1;
}

}  // namespace

OutputQueue::~OutputQueue() { loop_.Forget(fd_); }

void OutputQueue::Put(std::string_view text) {
  if (text.empty() || gone_) return;
  if (pieces_.empty()) loop_.Watch(fd_, POLLOUT, [this](short) { WriteSome(); });
  if (pieces_.empty() || pieces_.back().size() + text.size() > kPieceBytes) pieces_.emplace_back();
  pieces_.back() += text;
  bytes_ += text.size();
}

void OutputQueue::WriteSome() {
  for (size_t writes = kMostWrites; writes > 0 && !pieces_.empty(); --writes) {
    if (writes < kMostWrites && !IsWritable(fd_)) break;
    if (!WriteOnce()) return;
  }
  if (pieces_.empty()) loop_.Forget(fd_);
}

// Writes at most PIPE_BUF bytes, as a pipe that poll calls writable takes that many without blocking.
bool OutputQueue::WriteOnce() {
  const std::string& first = pieces_.front();
  const ssize_t got = write(fd_, first.data() + written_, std::min<size_t>(first.size() - written_, PIPE_BUF));
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return false;
  if (got < 0) {  // the reader has gone or the disk is full; training matters more than its log lines
    gone_ = true;
    pieces_.clear();
    bytes_ = 0;
    return true;
  }
  written_ += got;
  bytes_ -= got;
  if (written_ == first.size()) {
    pieces_.pop_front();
    written_ = 0;
  }
  return true;
}

}  // namespace muster
