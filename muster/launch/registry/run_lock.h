// The lock of a run: held by its supervisor for as long as that lives, however it ends; so what the registry says of a
// supervisor can be checked, after a reboot too. It is an flock(2) of Home::lock, and passes to a child with its
// descriptor: `muster train` takes it before others can see the experiment and gives it to the supervisor. Who only
// looks (IsHeld) keeps nobody from taking it. Functions are thread-safe, one RunLock isn't.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace muster {

class RunLock {
 public:
  // FailedPrecondition: somebody holds it. The folder must exist. Any other error: the file can't be made, or its file
  // system has no locks (Unimplemented).
  static absl::StatusOr<RunLock> Take(const std::string& path);
  // Of a descriptor that was passed on.
  static RunLock Adopt(int fd) { return RunLock(fd); }
  // Whether anybody holds it, this process included. True also where that can't be found out: nobody is called lost
  // who may live.
  static bool IsHeld(const std::string& path);
  // Lets go of it, unless a child has it too.
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
