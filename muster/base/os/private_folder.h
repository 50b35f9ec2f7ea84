// A folder of this user alone, opened step by step from one that all users may write, as /tmp: each step checks that
// the folder is no link, belongs to this user and is closed to others. By its descriptor it stays the same folder,
// whatever happens to its path. Not thread-safe.
#pragma once

#include <sys/stat.h>

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace muster {

// Returns whether only this user can have made it and can change it.
bool IsOfThisUserAlone(const struct stat& info);

class PrivateFolder {
 public:
  // Opens a folder that isn't checked.
  static absl::StatusOr<PrivateFolder> OpenShared(const std::string& path);
  // Opens a folder that is checked. Errors as those of OpenIn.
  static absl::StatusOr<PrivateFolder> Open(const std::string& path);
  PrivateFolder(PrivateFolder&& other) noexcept : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}
  PrivateFolder& operator=(PrivateFolder&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(path_, other.path_);
    return *this;
  }
  ~PrivateFolder();

  // Opens the folder `name` in this one; `make`: makes it if it isn't there, with mode 0700. NotFound: it isn't there.
  // FailedPrecondition: it is no folder, or not of this user alone. The message begins with the path.
  absl::StatusOr<PrivateFolder> OpenIn(const std::string& name, bool make) const;

  int fd() const { return fd_; }
  const std::string& path() const { return path_; }

 private:
  PrivateFolder(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

  int fd_;  // -1: moved from
  std::string path_;
};

}  // namespace muster
