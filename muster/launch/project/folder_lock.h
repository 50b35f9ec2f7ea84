// A lock on a folder below MUSTER_HOME, held while this object lives: an flock(2) of its file ".muster-lock", which
// ends with the process, however that ends. Threads of one process exclude each other, too.
//
// The locks of code/, builds/ and environments/ are held for an instant by each process that looks something up or
// removes something there, so that `muster gc` doesn't remove what was just found. The lock of a folder in them is held
// while that folder is being filled.
#pragma once

#include <sys/file.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/launch/system/home_lock.h"

namespace muster {

inline constexpr char kFolderLockName[] = ".muster-lock";

class FolderLock {
 public:
  // Makes the folder and its parents. Blocks for at most `wait`; Unavailable: another holder has the lock.
  // Unimplemented: its file system has no locks.
  static absl::StatusOr<FolderLock> Take(const std::string& folder, absl::Duration wait, LockCall call = flock);
  // Returns whether anybody has it, this process included. Makes nothing.
  static bool IsHeld(const std::string& folder);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&&) = delete;

 private:
  explicit FolderLock(int fd) : fd_(fd) {}
  int fd_;  // closed by exec
};

// How long to wait for a lock that is held for an instant.
inline constexpr absl::Duration kInstantLockWait = absl::Seconds(10);

}  // namespace muster
