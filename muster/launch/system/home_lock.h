// The call by which the locks of MUSTER_HOME are taken, flock(2), and the error where a file system lacks it, as Lustre
// does unless it is mounted with -o flock. Nothing takes its place: a lease that its holder renews would pass to
// another supervisor whenever that file system stands still for longer than the lease lasts. Thread-safe.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace muster {

using LockCall = int (*)(int fd, int operation);  // as flock(2)

// Returns whether this errno of flock(2) says that the file system has no locks.
bool LacksLocks(int error);
// Unimplemented, with the way out.
absl::Status LacksLocksError(const std::string& path);

}  // namespace muster
