// The lock of a run. Its supervisor holds it while it lives, however it ends, so what the registry says about a
// supervisor can be checked, after a reboot too. It is an flock(2) of Home::lock and passes to a child with its
// descriptor: `muster train` takes it before others can see the experiment and passes it to the supervisor. Checking it
// (IsHeld) never makes a Take fail. Functions are thread-safe, one RunLock isn't.
#pragma once

#include <sys/file.h>

#include <string>

#include "absl/status/statusor.h"
#include "muster/launch/system/home_lock.h"

namespace muster {

class RunLock {
 public:
  // Takes the lock. FailedPrecondition: another holds it. The folder must exist. Any other error: the file can't be
  // made, or its file system has no locks (Unimplemented).
  static absl::StatusOr<RunLock> Take(const std::string& path, LockCall call = flock);
  // Takes over a descriptor that was passed on.
  static RunLock Adopt(int fd) { return RunLock(fd); }
  // Returns whether anybody holds it, this process included. True also if that is unknown, so that no supervisor that
  // may live is considered lost.
  static bool IsHeld(const std::string& path, LockCall call = flock);
  // Releases it, unless a child has it too.
  ~RunLock();
  RunLock(RunLock&& other) noexcept;
  RunLock& operator=(RunLock&&) = delete;

  // Not closed by exec.
  int fd() const { return fd_; }

 private:
  explicit RunLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace muster
