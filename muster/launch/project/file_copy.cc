#include "muster/launch/project/file_copy.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/launch/project/sha256.h"

namespace muster {
namespace {

constexpr size_t kCopyBuffer = 256 << 10;

class CopyFd {
 public:
  explicit CopyFd(int fd) : fd_(fd) {}
  ~CopyFd() {
    if (fd_ >= 0) close(fd_);
  }
  CopyFd(CopyFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  CopyFd& operator=(CopyFd&&) = delete;
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

struct OpenedFile {
  CopyFd fd;
  int64_t bytes = 0;
};

absl::StatusOr<OpenedFile> OpenToCopy(const std::string& path) {
  // O_NONBLOCK: if the file has become a pipe meanwhile, this must not wait for a writer.
  CopyFd fd(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (fd.get() < 0) {
    if (errno == ENOENT || errno == ENOTDIR)
      return absl::AbortedError(absl::StrCat(path, " vanished before it could be copied; try again"));
    if (errno == ELOOP || errno == ENXIO)
      return absl::AbortedError(absl::StrCat(path, " was replaced before it could be copied; try again"));
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
  }
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
  if (!S_ISREG(info.st_mode))
    return absl::AbortedError(absl::StrCat(path, " was replaced before it could be copied; try again"));
  return OpenedFile{.fd = std::move(fd), .bytes = info.st_size};
}

// Hashes up to `bytes` from the file's position, fewer if the file has become shorter.
absl::StatusOr<FileContents> HashOpened(int fd, int64_t bytes, const std::string& path) {
  const std::unique_ptr<char[]> buffer(new char[kCopyBuffer]);
  Sha256 sha;
  FileContents contents;
  while (contents.bytes < bytes) {
    const size_t wanted = std::min<int64_t>(kCopyBuffer, bytes - contents.bytes);
    const ssize_t got = read(fd, buffer.get(), wanted);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
    if (got == 0) break;
    sha.Add({buffer.get(), static_cast<size_t>(got)});
    contents.bytes += got;
  }
  contents.digest = sha.Finish();
  return contents;
}

absl::Status CannotCopy(int error, const std::string& from, const std::string& to) {
  const std::string folder = std::filesystem::path(to).parent_path();
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return absl::ErrnoToStatus(
      error, absl::StrCat("cannot copy ", from, " into ", folder,
                          full ? "; make room there (`muster gc`), or name another folder by MUSTER_HOME" : ""));
}

// Copies the rest by read and write when the system's own ways have failed, from both files' positions.
absl::Status CopyByHand(int from, int to, int64_t bytes, const std::string& from_path, const std::string& to_path) {
  const std::unique_ptr<char[]> buffer(new char[kCopyBuffer]);
  while (bytes > 0) {
    const ssize_t got = read(from, buffer.get(), std::min<int64_t>(kCopyBuffer, bytes));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return CannotCopy(errno, from_path, to_path);
    if (got == 0) break;  // it has become shorter
    bytes -= got;
    for (ssize_t written = 0; written < got;) {
      const ssize_t now = write(to, buffer.get() + written, got - written);
      if (now < 0 && errno == EINTR) continue;
      if (now < 0) return CannotCopy(errno, from_path, to_path);
      written += now;
    }
  }
  return absl::OkStatus();
}

absl::Status CopyContents(int from, int to, int64_t bytes, const std::string& from_path, const std::string& to_path) {
  if (bytes == 0 || ioctl(to, FICLONE, from) == 0) return absl::OkStatus();
  while (bytes > 0) {
    const ssize_t copied = copy_file_range(from, nullptr, to, nullptr, bytes, 0);
    if (copied < 0 && errno == EINTR) continue;
    if (copied < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG || errno == EIO))
      return CannotCopy(errno, from_path, to_path);
    // These file systems can't do it, or the file has ended: some return 0 for files that they can't copy this way.
    if (copied <= 0) break;
    bytes -= copied;
  }
  return CopyByHand(from, to, bytes, from_path, to_path);
}

absl::StatusOr<OpenedFile> CopyOpened(const std::string& from, const std::string& to, bool executable) {
  ASSIGN_OR_RETURN(const OpenedFile source, OpenToCopy(from));
  CopyFd target(open(to.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, executable ? 0777 : 0666));
  if (target.get() < 0) return CannotCopy(errno, from, to);
  RETURN_IF_ERROR(CopyContents(source.fd.get(), target.get(), source.bytes, from, to));
  struct stat info;
  if (fstat(target.get(), &info) != 0 || lseek(target.get(), 0, SEEK_SET) != 0) return CannotCopy(errno, from, to);
  return OpenedFile{.fd = std::move(target), .bytes = info.st_size};
}

// Some file systems report only now that the disk is full.
absl::Status CloseCopy(CopyFd fd, const std::string& from, const std::string& to) {
  if (close(fd.Release()) == 0 || errno == EINTR) return absl::OkStatus();
  return CannotCopy(errno, from, to);
}

}  // namespace

absl::StatusOr<FileReader> FileReader::Open(const std::string& path) {
  ASSIGN_OR_RETURN(OpenedFile file, OpenToCopy(path));
  return FileReader(file.fd.Release());
}

FileReader::~FileReader() {
  if (fd_ >= 0) close(fd_);
}

absl::Status FileReader::Read(char* into, size_t bytes) {
  while (bytes > 0) {
    const ssize_t got = read(fd_, into, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return absl::DataLossError("a file has become shorter, or can't be read any more");
    into += got;
    bytes -= static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

absl::StatusOr<FileContents> HashFile(const std::string& path) {
  ASSIGN_OR_RETURN(const OpenedFile file, OpenToCopy(path));
  return HashOpened(file.fd.get(), file.bytes, path);
}

absl::Status CopyFileOnce(const std::string& from, const std::string& to, bool executable) {
  ASSIGN_OR_RETURN(OpenedFile copy, CopyOpened(from, to, executable));
  return CloseCopy(std::move(copy.fd), from, to);
}

absl::StatusOr<FileContents> CopyAndHashFile(const std::string& from, const std::string& to, bool executable) {
  ASSIGN_OR_RETURN(OpenedFile copy, CopyOpened(from, to, executable));
  ASSIGN_OR_RETURN(FileContents contents, HashOpened(copy.fd.get(), copy.bytes, to));
  RETURN_IF_ERROR(CloseCopy(std::move(copy.fd), from, to));
  return contents;
}

}  // namespace muster
