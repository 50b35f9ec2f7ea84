#include "muster/launch/project/temporary_folder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/launch/project/remove_folder.h"
#include "muster/launch/system/random_hex.h"

namespace muster {

absl::StatusOr<TemporaryFolder> TemporaryFolder::Make(const std::string& parent) {
  // Keeps a process that looks for leftovers from seeing the folder before it is locked.
  ASSIGN_OR_RETURN(const FolderLock instant, FolderLock::Take(parent, kInstantLockWait));
  std::string path = absl::StrCat(parent, "/", kTemporaryPrefix, RandomHex(8));
  ASSIGN_OR_RETURN(FolderLock lock, FolderLock::Take(path, absl::ZeroDuration()));
  return TemporaryFolder(std::move(path), std::move(lock));
}

TemporaryFolder::~TemporaryFolder() {
  // `muster gc` finds what is left then.
  Remove().IgnoreError();
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept
    : path_(std::exchange(other.path_, "")), lock_(std::move(other.lock_)) {}

absl::Status TemporaryFolder::Remove() {
  const std::string path = std::exchange(path_, "");
  return path.empty() ? absl::OkStatus() : RemoveFolder(path);
}

}  // namespace muster
