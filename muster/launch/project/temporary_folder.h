// A folder in which something is made before it is renamed into its place, or into which something is moved to be
// removed. The destructor removes what is still in it. What a killed process left is recognised by its name and by its
// lock, which nobody holds. Not thread-safe.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "muster/launch/project/folder_lock.h"

namespace muster {

// Prefix of the names of such folders: ".tmp-0123456789abcdef".
inline constexpr char kTemporaryPrefix[] = ".tmp-";

class TemporaryFolder {
 public:
  // Makes it in `parent`, which is made if missing. Takes the lock of `parent` for an instant.
  static absl::StatusOr<TemporaryFolder> Make(const std::string& parent);
  ~TemporaryFolder();
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;

  const std::string& path() const { return path_; }
  // Removes it now, so that an error can be reported.
  [[nodiscard]] absl::Status Remove();

 private:
  TemporaryFolder(std::string path, FolderLock lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;  // empty: none
  FolderLock lock_;
};

}  // namespace muster
