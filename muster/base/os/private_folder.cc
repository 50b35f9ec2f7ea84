#include "muster/base/os/private_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "muster/base/write_error.h"

namespace muster {
namespace {

absl::Status NotOpened(const std::string& path, int error) {
  if (error == ENOENT) return absl::NotFoundError(absl::StrCat(path, " isn't there"));
  if (error == ELOOP || error == ENOTDIR) return absl::FailedPreconditionError(absl::StrCat(path, " is not a folder"));
  if (error == EACCES)
    return absl::FailedPreconditionError(absl::StrCat(path, " belongs to another user or is open to others"));
  return absl::ErrnoToStatus(error, absl::StrCat(path, " can't be opened"));
}

}  // namespace

bool IsOfThisUserAlone(const struct stat& info) { return info.st_uid == geteuid() && (info.st_mode & 077) == 0; }

absl::StatusOr<PrivateFolder> PrivateFolder::OpenShared(const std::string& path) {
  PrivateFolder folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), path);
  if (folder.fd_ < 0) return absl::ErrnoToStatus(errno, absl::StrCat(path, " can't be opened"));
  return folder;
}

absl::StatusOr<PrivateFolder> PrivateFolder::Open(const std::string& path) {
  return PrivateFolder(AT_FDCWD, path).OpenIn("", /*make=*/false);
}

PrivateFolder::~PrivateFolder() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<PrivateFolder> PrivateFolder::OpenIn(const std::string& name, bool make) const {
  const std::string path = name.empty() ? path_ : absl::StrCat(path_, "/", name);
  const std::string& opened = name.empty() ? path_ : name;
  if (make && mkdirat(fd_, opened.c_str(), 0700) != 0 && errno != EEXIST)
    return WriteError(errno, absl::StrCat(path, " can't be made"));
  PrivateFolder folder(openat(fd_, opened.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), path);
  if (folder.fd_ < 0) return NotOpened(path, errno);
  struct stat info {};
  if (fstat(folder.fd_, &info) != 0 || !IsOfThisUserAlone(info)) return NotOpened(path, EACCES);
  return folder;
}

}  // namespace muster
