#include "apps/muster/terminal/log_output.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace muster {
namespace {

constexpr size_t kMostWaiting = 64 << 10;

}  // namespace

LogOutput::LogOutput(int stop_fd) : stop_fd_(stop_fd) {
  std::fflush(stdout);
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &before_);
}

LogOutput::~LogOutput() { sigaction(SIGPIPE, &before_, nullptr); }

void LogOutput::Put(std::string_view line) {
  if (done_) return;
  waiting_.append(line);
  waiting_.push_back('\n');
  if (waiting_.size() >= kMostWaiting) Flush();
}

void LogOutput::Flush() {
  while (!done_ && written_ < waiting_.size()) WriteSome();
  waiting_.clear();
  written_ = 0;
}

void LogOutput::WriteSome() {
  pollfd fds[] = {{STDOUT_FILENO, POLLOUT, 0}, {stop_fd_, POLLIN, 0}};
  if (poll(fds, 2, -1) < 0) return;
  if (fds[1].revents != 0) {
    done_ = true;
    return;
  }
  // Writes at most as much as a pipe that poll calls writable takes without blocking.
  const size_t most = std::min<size_t>(waiting_.size() - written_, PIPE_BUF);
  const ssize_t written = write(STDOUT_FILENO, waiting_.data() + written_, most);
  if (written >= 0) {
    written_ += written;
  } else if (errno != EINTR && errno != EAGAIN) {
    if (errno != EPIPE) status_ = absl::ErrnoToStatus(errno, "can't write to standard output");
    done_ = true;
  }
}

}  // namespace muster
