#include "muster/launch/project/folder_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "muster/base/clock.h"

namespace muster {

absl::StatusOr<FolderLock> FolderLock::Take(const std::string& folder, absl::Duration wait, LockCall call) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot make the folder ", folder));
  const std::string path = absl::StrCat(folder, "/", kFolderLockName);
  FolderLock lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (lock.fd_ < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
  const absl::Time deadline = RealClock().Now() + wait;
  absl::Duration pause = absl::Milliseconds(1);
  while (call(lock.fd_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (LacksLocks(errno)) return LacksLocksError(path);
    if (errno != EWOULDBLOCK) return absl::ErrnoToStatus(errno, absl::StrCat("cannot lock ", path));
    if (RealClock().Now() >= deadline)
      return absl::UnavailableError(absl::StrCat("another muster process is at work in ", folder));
    // Polls, because flock has no timeout.
    absl::SleepFor(pause);
    pause = std::min(2 * pause, absl::Milliseconds(20));
  }
  return lock;
}

bool FolderLock::IsHeld(const std::string& folder) {
  const int fd = open(absl::StrCat(folder, "/", kFolderLockName).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool held = flock(fd, LOCK_SH | LOCK_NB) != 0;
  close(fd);
  return held;
}

FolderLock::~FolderLock() {
  if (fd_ >= 0) close(fd_);
}

FolderLock::FolderLock(FolderLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

}  // namespace muster
