// Files as an injected thing, so that tests can make a disk full, read-only or lose a rename. Errors carry the path.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/base/bytes.h"

namespace muster {

// A file being written from the start. Not thread-safe. Destroying it without Close abandons it (the bytes may be
// there).
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  [[nodiscard]] virtual absl::Status Append(ByteSpan bytes) = 0;
  // Everything appended has reached the operating system (another process can read it).
  [[nodiscard]] virtual absl::Status Flush() = 0;
  // Everything appended has reached the disk (fsync).
  [[nodiscard]] virtual absl::Status Sync() = 0;
  [[nodiscard]] virtual absl::Status Close() = 0;
};

// The exclusive right to something, until it is destroyed or its process ends, in whatever way.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

// Thread-safe. Paths are as the operating system takes them.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // Creates or truncates.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> OpenForWriting(const std::string& path) = 0;
  // NotFound if there is none.
  virtual absl::StatusOr<std::string> ReadFile(const std::string& path) = 0;
  // Reads exactly `into.size()` bytes at `offset`; DataLoss if the file is shorter.
  [[nodiscard]] virtual absl::Status ReadAt(const std::string& path, uint64_t offset, MutableByteSpan into) = 0;
  virtual absl::StatusOr<uint64_t> FileSize(const std::string& path) = 0;
  virtual bool Exists(const std::string& path) = 0;
  // With parents; an existing directory is fine.
  [[nodiscard]] virtual absl::Status CreateDirectory(const std::string& path) = 0;
  // Names (not paths) in the directory, sorted.
  virtual absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) = 0;
  // Atomic within one directory; replaces the target.
  [[nodiscard]] virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  // A file; NotFound if there is none.
  [[nodiscard]] virtual absl::Status Remove(const std::string& path) = 0;
  // A directory and all below; none is fine.
  [[nodiscard]] virtual absl::Status RemoveTree(const std::string& path) = 0;
  // Makes renames and new names in the directory durable.
  [[nodiscard]] virtual absl::Status SyncDirectory(const std::string& path) = 0;
  // Takes the lock that the file at `path` stands for, and writes `holder` into the file, which is made if there is
  // none and stays when the lock is given back. Doesn't wait. FailedPrecondition: somebody holds it, in this process or
  // another; the message is what he wrote there. Unimplemented: this file system has no locks.
  virtual absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path, const std::string& holder) = 0;
};

// The machine's. Lives for the whole process.
FileSystem& PosixFileSystem();

// temp -> fsync -> rename -> fsync of the directory: a reader sees the old file or the whole new one.
[[nodiscard]] absl::Status WriteFileAtomically(FileSystem& files, const std::string& path, ByteSpan bytes);

// "a" + "b" -> "a/b"; an absolute `name` wins.
std::string JoinPath(const std::string& directory, const std::string& name);

}  // namespace muster
