#include "muster/launch/registry/run_lock.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// How often Take retries, a millisecond apart, while others check the lock. They hold it for microseconds, unless one
// was stopped just then.
constexpr int kLockTries = 2000;

// Returns 0 or errno.
int LockAtOnce(LockCall lock, int fd, int operation) {
  for (;;) {
    if (lock(fd, operation | LOCK_NB) == 0) return 0;
    if (errno != EINTR) return errno;
  }
}

}  // namespace

absl::StatusOr<RunLock> RunLock::Take(const std::string& path, LockCall call) {
  RunLock lock(open(path.c_str(), O_RDWR | O_CREAT, 0600));  // without O_CLOEXEC: a supervisor inherits it
  if (lock.fd_ < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot make the lock file ", path));
  for (int tries = 0; tries < kLockTries; ++tries) {
    int error = LockAtOnce(call, lock.fd_, LOCK_EX);
    if (error == 0) return lock;
    // If the lock can be shared, the holders are only checking it, and will be done in a moment.
    if (error == EWOULDBLOCK) error = LockAtOnce(call, lock.fd_, LOCK_SH);
    if (error == EWOULDBLOCK) break;
    if (LacksLocks(error)) return LacksLocksError(path);
    if (error == 0) error = LockAtOnce(call, lock.fd_, LOCK_UN);
    if (error != 0) return absl::ErrnoToStatus(error, absl::StrCat("cannot lock ", path));
    poll(nullptr, 0, 1);
  }
  return absl::FailedPreconditionError(
      absl::StrCat(path, " is locked: another supervisor of this experiment is running; wait for it, or end it"));
}

bool RunLock::IsHeld(const std::string& path, LockCall call) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno != ENOENT && errno != ENOTDIR;
  // Shared, so that two checks don't see each other; closing releases it.
  const bool held = LockAtOnce(call, fd, LOCK_SH) != 0;
  close(fd);
  return held;
}

RunLock::~RunLock() {
  // Not LOCK_UN, which would also release it for a child that inherited the descriptor.
  if (fd_ >= 0) close(fd_);
}

RunLock::RunLock(RunLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

}  // namespace muster
