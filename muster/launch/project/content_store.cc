#include "muster/launch/project/content_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/absl_view.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/base/status_macros.h"
#include "muster/launch/project/file_copy.h"
#include "muster/launch/project/temporary_folder.h"
#include "muster/launch/system/random_hex.h"

namespace muster {

absl::Status CacheError(int error, const std::string& what) {
  const char* way_out = "";
  if (error == ENOSPC || error == EDQUOT || error == EFBIG)
    way_out = "; make room there, or set XDG_CACHE_HOME on that host to a folder on another disk";
  if (error == EACCES || error == EPERM || error == EROFS)
    way_out = "; make it writable, or set XDG_CACHE_HOME on that host to a folder that is";
  return absl::ErrnoToStatus(error, absl::StrCat(what, way_out));
}

absl::Status MakeCacheFolder(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path();
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return absl::OkStatus();
  if (!parent.empty() && parent != path) RETURN_IF_ERROR(MakeCacheFolder(parent));
  if (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return absl::OkStatus();
  return CacheError(errno, absl::StrCat("cannot make ", path));
}

absl::Status CheckOwnFolder(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return CacheError(errno, absl::StrCat("cannot look at ", path));
  if (info.st_uid == geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(path, " isn't this user's own, or others may write there; chmod go-w makes it private, or set ",
                   "XDG_CACHE_HOME on that host to a folder that is"));
}

std::string ContentStore::PathOf(const std::string& digest) const {
  const std::string name = absl::BytesToHexString(AbslView(digest));
  return absl::StrCat(folder_, "/", name.substr(0, 2), "/", name);
}

bool ContentStore::Has(const std::string& digest) const {
  const std::string path = PathOf(digest);
  const absl::StatusOr<FileContents> contents = HashFile(path);
  if (!contents.ok() || contents->digest != digest) return false;
  return utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW) == 0;
}

void ContentStore::Sweep(absl::Time before, absl::Time left_before) const {
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator entry(folder_, error), end; !error && entry != end;
       entry.increment(error)) {
    struct stat info;
    const std::string path = entry->path();
    if (lstat(path.c_str(), &info) != 0 || S_ISDIR(info.st_mode)) continue;
    const bool left = absl::StartsWith(entry->path().filename().string(), kTemporaryPrefix);
    if (absl::TimeFromTimespec(info.st_mtim) < (left ? left_before : before)) unlink(path.c_str());
  }
}

absl::StatusOr<ContentStore::Incoming> ContentStore::Incoming::Begin(const ContentStore& store,
                                                                     const std::string& digest) {
  std::string path = store.PathOf(digest);
  RETURN_IF_ERROR(MakeCacheFolder(std::filesystem::path(path).parent_path()));
  return BeginWith(std::move(path), digest, 0600, /*cached=*/true);
}

absl::StatusOr<ContentStore::Incoming> ContentStore::Incoming::BeginAt(std::string path, const std::string& digest,
                                                                       bool executable) {
  return BeginWith(std::move(path), digest, executable ? 0777 : 0666, /*cached=*/false);
}

absl::StatusOr<ContentStore::Incoming> ContentStore::Incoming::BeginWith(std::string path, const std::string& digest,
                                                                         mode_t mode, bool cached) {
  const std::string folder = std::filesystem::path(path).parent_path();
  std::string written = absl::StrCat(folder, "/", kTemporaryPrefix, RandomHex(8));
  const int fd = open(written.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  const int error = errno;
  Incoming incoming(fd, std::move(written), std::move(path), digest, cached);
  if (fd < 0) return incoming.Failed(error, absl::StrCat("cannot write into ", folder));
  return incoming;
}

ContentStore::Incoming::Incoming(int fd, std::string written, std::string path, std::string digest, bool cached)
    : fd_(fd),
      written_(std::move(written)),
      path_(std::move(path)),
      digest_(std::move(digest)),
      cached_(cached),
      sha_(std::make_unique<Sha256>()) {}

absl::Status ContentStore::Incoming::Failed(int error, const std::string& what) const {
  return cached_ ? CacheError(error, what) : absl::ErrnoToStatus(error, what);
}

ContentStore::Incoming::Incoming(Incoming&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      written_(std::move(other.written_)),
      path_(std::move(other.path_)),
      digest_(std::move(other.digest_)),
      cached_(other.cached_),
      sha_(std::move(other.sha_)) {}

ContentStore::Incoming::~Incoming() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(written_.c_str());
}

absl::Status ContentStore::Incoming::Add(std::string_view bytes) {
  sha_->Add(bytes);
  while (!bytes.empty()) {
    const ssize_t put = Uninterrupted([&] { return write(fd_, bytes.data(), bytes.size()); });
    if (put < 0) return Failed(errno, absl::StrCat("cannot write ", written_));
    bytes.remove_prefix(put);
  }
  return absl::OkStatus();
}

absl::Status ContentStore::Incoming::Finish() {
  if (sha_->Finish() != digest_) return absl::DataLossError("a file has arrived with other contents than announced");
  // Some file systems report only now that the disk is full.
  const bool closed = close(std::exchange(fd_, -1)) == 0 || errno == EINTR;
  if (closed && rename(written_.c_str(), path_.c_str()) == 0) return absl::OkStatus();
  const int error = errno;
  unlink(written_.c_str());
  return Failed(error, absl::StrCat("cannot write ", path_));
}

}  // namespace muster
