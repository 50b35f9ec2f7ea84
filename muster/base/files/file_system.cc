#include "muster/base/files/file_system.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

// CreateFile takes away what has its name, and gives up if something new is there each time.
constexpr int kCreateAttempts = 8;
// A lock's file has the name of its holder, which is shorter.
constexpr size_t kMaxHolderBytes = 4096;

absl::Status Error(const std::string& what, const std::string& path, int error = errno) {
  return absl::ErrnoToStatus(error, absl::StrCat("cannot ", what, " ", path));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(other.Release()) {}
  Descriptor& operator=(Descriptor&&) = delete;
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

class PosixWritableFile final : public WritableFile {
 public:
  PosixWritableFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  absl::Status Append(ByteSpan bytes) override {
    while (!bytes.empty()) {
      const ssize_t written = write(fd_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return Error("write", path_);
      bytes = bytes.subspan(written);
    }
    return absl::OkStatus();
  }
  absl::Status Flush() override { return absl::OkStatus(); }
  absl::Status Sync() override {
    if (fsync(fd_.get()) != 0) return Error("sync", path_);
    return absl::OkStatus();
  }
  absl::Status Close() override {
    if (close(fd_.Release()) != 0) return Error("close", path_);
    return absl::OkStatus();
  }

 private:
  const std::string path_;
  Descriptor fd_;
};

// Reads until `into` is full; `path` is for messages.
absl::Status ReadFully(int fd, const std::string& path, uint64_t offset, MutableByteSpan into) {
  while (!into.empty()) {
    const ssize_t got = pread(fd, into.data(), into.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error("read", path);
    if (got == 0) return absl::DataLossError(absl::StrCat(path, " is too short: ends at byte ", offset));
    into = into.subspan(got);
    offset += got;
  }
  return absl::OkStatus();
}

class PosixReadableFile final : public ReadableFile {
 public:
  PosixReadableFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  absl::Status ReadAt(uint64_t offset, MutableByteSpan into) const override {
    return ReadFully(fd_.get(), path_, offset, into);
  }
  absl::StatusOr<uint64_t> Size() const override {
    struct stat info;
    if (fstat(fd_.get(), &info) != 0) return Error("read", path_);
    return info.st_size;
  }

 private:
  const std::string path_;
  const Descriptor fd_;
};

// The kernel releases the lock with the last descriptor of this open file: at close, or when the process ends.
class PosixFileLock final : public FileLock {
 public:
  explicit PosixFileLock(int fd) : fd_(fd) {}

 private:
  const Descriptor fd_;
};

absl::StatusOr<std::unique_ptr<WritableFile>> CreateNew(const std::string& path) {
  for (int attempt = 0; attempt < kCreateAttempts; ++attempt) {
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd >= 0) return std::make_unique<PosixWritableFile>(path, fd);
    if (errno != EEXIST) return Error("write", path);
    if (unlink(path.c_str()) != 0 && errno != ENOENT) return Error("replace", path);
  }
  return absl::AlreadyExistsError(
      absl::StrCat("cannot write ", path, ": somebody keeps putting another file there; use a folder of your own"));
}

absl::StatusOr<std::string> ReadPlainFile(const std::string& path, size_t limit) {
  Descriptor fd(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (fd.get() < 0 && errno != ELOOP) return Error("read", path);
  struct stat info {};
  if (fd.get() < 0 || fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return absl::FailedPreconditionError(absl::StrCat(path, " is not a plain file"));
  std::string content;
  char buffer[1 << 14];
  while (content.size() <= limit) {
    const ssize_t got = read(fd.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error("read", path);
    if (got == 0) return content;
    content.append(buffer, got);
  }
  return absl::FailedPreconditionError(absl::StrCat(path, " has more than ", limit, " bytes"));
}

// For a lock. Writing the holder's name must not change a file that somebody has linked here.
absl::StatusOr<Descriptor> OpenPlainFile(const std::string& path) {
  Descriptor fd(open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
  if (fd.get() < 0 && errno != ELOOP) return Error("lock", path);
  struct stat info {};
  if (fd.get() < 0 || fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_nlink > 1)
    return absl::InvalidArgumentError(
        absl::StrCat("cannot lock ", path, ": it is a link or not a plain file; remove it"));
  return fd;
}

class Posix final : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<WritableFile>> OpenForWriting(const std::string& path) override {
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) return Error("write", path);
    return std::make_unique<PosixWritableFile>(path, fd);
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override { return CreateNew(path); }
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenForReading(const std::string& path) override {
    const int fd = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);  // a pipe would wait for its writer
    if (fd < 0) return Error("read", path);
    auto file = std::make_unique<PosixReadableFile>(path, fd);
    struct stat info {};
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
      return absl::FailedPreconditionError(absl::StrCat(path, " is not a plain file"));
    return file;
  }

  absl::StatusOr<std::string> ReadFile(const std::string& path) override {
    Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (fd.get() < 0) return Error("read", path);
    struct stat info {};
    std::string content;
    // Saves copying a large file while it grows. Those of /proc have no size.
    if (fstat(fd.get(), &info) == 0) content.reserve(static_cast<size_t>(info.st_size));
    char buffer[1 << 16];
    for (;;) {
      const ssize_t got = read(fd.get(), buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return Error("read", path);
      if (got == 0) return content;
      content.append(buffer, got);
    }
  }

  absl::StatusOr<std::string> ReadShortFile(const std::string& path, size_t limit) override {
    return ReadPlainFile(path, limit);
  }

  absl::Status ReadAt(const std::string& path, uint64_t offset, MutableByteSpan into) override {
    Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (fd.get() < 0) return Error("read", path);
    return ReadFully(fd.get(), path, offset, into);
  }

  absl::StatusOr<uint64_t> FileSize(const std::string& path) override {
    struct stat info;
    if (stat(path.c_str(), &info) != 0) return Error("read", path);
    return info.st_size;
  }

  bool Exists(const std::string& path) override {
    struct stat info;
    return stat(path.c_str(), &info) == 0;
  }

  absl::Status CreateDirectory(const std::string& path) override {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) return Error("create directory", path, error.value());
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) override {
    std::error_code error;
    std::vector<std::string> names;
    for (std::filesystem::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
      names.push_back(it->path().filename().string());
    if (error) return Error("list directory", path, error.value());
    std::sort(names.begin(), names.end());
    return names;
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    if (rename(from.c_str(), to.c_str()) != 0) return Error(absl::StrCat("rename ", from, " to"), to);
    return absl::OkStatus();
  }

  absl::Status Remove(const std::string& path) override {
    if (unlink(path.c_str()) != 0) return Error("remove", path);
    return absl::OkStatus();
  }

  absl::Status RemoveTree(const std::string& path) override {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    if (error) return Error("remove", path, error.value());
    return absl::OkStatus();
  }

  absl::Status SyncDirectory(const std::string& path) override {
    Descriptor fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd.get() < 0) return Error("sync directory", path);
    if (fsync(fd.get()) != 0) return Error("sync directory", path);
    return absl::OkStatus();
  }

  // Uses flock, not fcntl's locks, which belong to the process: two writers in one process would share them. The file
  // isn't removed with the lock, because another process may have opened it and would then lock a file without a name.
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path, const std::string& holder) override {
    ASSIGN_OR_RETURN(Descriptor fd, OpenPlainFile(path));
    while (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno == ENOLCK || errno == ENOTSUP || errno == ENOSYS || errno == EINVAL)
        return absl::UnimplementedError(absl::StrCat("cannot lock ", path, ": this file system has no locks"));
      if (errno != EWOULDBLOCK) return Error("lock", path);
      const auto found = ReadShortFile(path, kMaxHolderBytes);
      return absl::FailedPreconditionError(found.ok() && !found->empty() ? *found : "somebody who left no name");
    }
    if (ftruncate(fd.get(), 0) != 0) return Error("write", path);
    if (pwrite(fd.get(), holder.data(), holder.size(), 0) != static_cast<ssize_t>(holder.size()))
      return Error("write", path);
    return std::make_unique<PosixFileLock>(fd.Release());
  }
};

}  // namespace

FileSystem& PosixFileSystem() {
  static Posix files;
  return files;
}

absl::Status WriteFileAtomically(FileSystem& files, const std::string& path, ByteSpan bytes) {
  const std::string temporary = absl::StrCat(path, ".tmp", getpid());
  ASSIGN_OR_RETURN(auto file, files.CreateFile(temporary));
  absl::Status status = file->Append(bytes);
  if (status.ok()) status = file->Sync();
  if (status.ok()) status = file->Close();
  if (status.ok()) status = files.Rename(temporary, path);
  if (!status.ok()) {
    files.Remove(temporary).IgnoreError();
    return status;
  }
  const std::string directory = std::filesystem::path(path).parent_path().string();
  return files.SyncDirectory(directory.empty() ? "." : directory);
}

std::string JoinPath(const std::string& directory, const std::string& name) {
  return (std::filesystem::path(directory) / name).string();
}

}  // namespace muster
