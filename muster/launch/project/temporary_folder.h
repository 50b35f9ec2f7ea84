// A folder in which something is made that is renamed into its place when it is whole, or to which something is moved
// that is to be removed. Whatever is still in it when this goes is removed with it; what a killed process left is known
// by its name and by its lock, which nobody holds. Not thread-safe.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "muster/launch/project/folder_lock.h"

namespace muster {

// Of names of such folders: ".tmp-0123456789abcdef".
inline constexpr char kTemporaryPrefix[] = ".tmp-";

class TemporaryFolder {
 public:
  // In `parent`, which is made if it isn't there. Takes the lock of `parent` for an instant.
  static absl::StatusOr<TemporaryFolder> Make(const std::string& parent);
  ~TemporaryFolder();
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;

  const std::string& path() const { return path_; }
  // Removes it now, so that an error can be told.
  [[nodiscard]] absl::Status Remove();

 private:
  TemporaryFolder(std::string path, FolderLock lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;  // empty: none
  FolderLock lock_;
};

}  // namespace muster
