#include "muster/launch/system/home_lock.h"

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace muster {

bool LacksLocks(int error) { return error == ENOLCK || error == ENOTSUP || error == ENOSYS || error == EINVAL; }

absl::Status LacksLocksError(const std::string& path) {
  return absl::UnimplementedError(
      absl::StrCat("cannot lock ", path,
                   ": its file system has no locks (flock); set MUSTER_HOME to a folder on one that has them, as NFS, "
                   "or Lustre mounted with -o flock"));
}

}  // namespace muster
