// The right to a folder below MUSTER_HOME for as long as this lives: an flock(2) of its file ".muster-lock", so that it
// ends with the process, however that ends. Threads of one process exclude each other likewise.
//
// Of code/, builds/ and environments/ it is held for an instant by whoever looks for something in them or takes
// something away, so that `muster gc` doesn't take what was found just now; of a folder in them for as long as somebody
// fills it.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster {

inline constexpr char kFolderLockName[] = ".muster-lock";

class FolderLock {
 public:
  // Makes the folder and those above it. Blocks for at most `wait`; Unavailable: somebody else has it.
  static absl::StatusOr<FolderLock> Take(const std::string& folder, absl::Duration wait);
  // Whether anybody has it, this process included. Makes nothing.
  static bool IsHeld(const std::string& folder);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&&) = delete;

 private:
  explicit FolderLock(int fd) : fd_(fd) {}
  int fd_;  // closed by exec
};

// How long is waited for what is held for an instant.
inline constexpr absl::Duration kInstantLockWait = absl::Seconds(10);

}  // namespace muster
