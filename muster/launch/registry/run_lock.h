// The lock of a run: held by its supervisor for as long as that lives, however it ends; so what the registry says of a
// supervisor can be checked, after a reboot too. It is an flock(2) of Home::lock, and passes to a child with its
// descriptor: `muster train` takes it before the experiment is in the registry and gives it to the supervisor.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace muster {

class RunLock {
 public:
  // FailedPrecondition: somebody holds it. The folder must exist.
  static absl::StatusOr<RunLock> Take(const std::string& path);
  // Of a descriptor that was passed on.
  static RunLock Adopt(int fd) { return RunLock(fd); }
  // Whether anybody holds it, this process included.
  static bool IsHeld(const std::string& path);
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
