#include "muster/launch/project/remove_folder.h"

#include <sys/stat.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// Read-only folders (Go's modules, data sets) can't be emptied otherwise.
void MakeFoldersWritable(const std::string& path) {
  std::error_code error;
  std::filesystem::permissions(path, std::filesystem::perms::owner_all, std::filesystem::perm_options::add, error);
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->symlink_status(ignored).type() == std::filesystem::file_type::directory)
      MakeFoldersWritable(entry->path());
  }
}

}  // namespace

absl::Status RemoveFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error == std::errc::permission_denied) {
    MakeFoldersWritable(path);
    std::filesystem::remove_all(path, error);
  }
  if (!error) return absl::OkStatus();
  return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot remove ", path));
}

int64_t BytesOfFolder(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return 0;
  if (!S_ISDIR(info.st_mode)) return S_ISREG(info.st_mode) && info.st_nlink == 1 ? info.st_size : 0;
  int64_t bytes = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error))
    bytes += BytesOfFolder(entry->path());
  return bytes;
}

}  // namespace muster
