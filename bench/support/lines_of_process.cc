#include "bench/support/lines_of_process.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"

namespace muster::bench {
namespace {

constexpr size_t kPiece = 64 << 10;

}  // namespace

LinesOfProcess::LinesOfProcess(const std::vector<std::string>& command, const EnvironmentChanges& environment) {
  std::array<int, 2> ends = {};
  MUSTER_CHECK(pipe2(ends.data(), O_CLOEXEC) == 0);
  fd_ = ends[0];
  pid_ = Start(command, environment, absl::StrCat("/proc/self/fd/", ends[1]));
  close(ends[1]);
}

LinesOfProcess::~LinesOfProcess() {
  close(fd_);
  if (pid_ == 0) return;
  kill(pid_, SIGKILL);
  WaitFor(pid_);
}

absl::StatusOr<bool> LinesOfProcess::Read(absl::Duration patience,
                                          const std::function<bool(std::string_view line)>& take) {
  for (;;) {
    for (size_t end = unread_.find('\n', at_); end != std::string::npos; end = unread_.find('\n', at_)) {
      const std::string_view line = std::string_view(unread_).substr(at_, end - at_);
      at_ = end + 1;
      if (!take(line)) return true;
    }
    if (at_ > 0) last_lines_ = unread_.substr(0, at_);
    unread_.erase(0, at_);
    at_ = 0;
    pollfd readable = {fd_, POLLIN, 0};
    if (poll(&readable, 1, static_cast<int>(absl::ToInt64Milliseconds(patience))) == 0)
      return absl::DeadlineExceededError(absl::StrCat("nothing was printed in ", absl::FormatDuration(patience),
                                                      "; the last lines were:\n", last_lines_));
    const size_t before = unread_.size();
    unread_.resize(before + kPiece);
    const ssize_t got = read(fd_, unread_.data() + before, kPiece);
    unread_.resize(before + (got > 0 ? static_cast<size_t>(got) : 0));
    if (got == 0) return false;
    if (got < 0 && errno != EINTR) return absl::ErrnoToStatus(errno, "cannot read the output of a process");
  }
}

int LinesOfProcess::Wait(double* cpu_seconds) { return WaitFor(std::exchange(pid_, 0), cpu_seconds); }

}  // namespace muster::bench
