// Injected file access, so that tests can make a disk full or read-only, or lose a rename. Errors carry the path.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/base/bytes.h"

namespace muster {

// A file being written from its beginning. Not thread-safe. Destroying it without Close abandons it (the bytes may
// still be in the file).
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  [[nodiscard]] virtual absl::Status Append(ByteSpan bytes) = 0;
  // Returns when everything appended has reached the operating system (another process can read it).
  [[nodiscard]] virtual absl::Status Flush() = 0;
  // Returns when everything appended is on the disk (fsync).
  [[nodiscard]] virtual absl::Status Sync() = 0;
  [[nodiscard]] virtual absl::Status Close() = 0;
};

// A file opened for reading: it stays the same file, whatever is renamed to its name or removed meanwhile. Thread-safe.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  // Reads exactly `into.size()` bytes at `offset`; DataLoss if the file is shorter.
  [[nodiscard]] virtual absl::Status ReadAt(uint64_t offset, MutableByteSpan into) const = 0;
  virtual absl::StatusOr<uint64_t> Size() const = 0;
};

// An exclusive right, held until this is destroyed or the process ends in any way.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

// Thread-safe. Paths are as the operating system takes them. In a folder that others may write, too, a name can stand
// for something that somebody else has put there: CreateFile and ReadShortFile are for such folders.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // Creates the file, or truncates what the path leads to. For a path that the user has named: it may be a link or a
  // device.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> OpenForWriting(const std::string& path) = 0;
  // Creates a new file. What has the name, a file left over or a link, is removed first and never written through.
  // AlreadyExists: somebody else keeps putting something there.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) = 0;
  // NotFound if the file doesn't exist.
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> OpenForReading(const std::string& path) = 0;
  // NotFound if the file doesn't exist.
  virtual absl::StatusOr<std::string> ReadFile(const std::string& path) = 0;
  // Reads a whole file of at most `limit` bytes, and never waits for a writer. NotFound if it doesn't exist.
  // FailedPrecondition: it is longer, or a link, a pipe or anything else that isn't a plain file.
  virtual absl::StatusOr<std::string> ReadShortFile(const std::string& path, size_t limit) = 0;
  // Reads exactly `into.size()` bytes at `offset`; DataLoss if the file is shorter.
  [[nodiscard]] virtual absl::Status ReadAt(const std::string& path, uint64_t offset, MutableByteSpan into) = 0;
  virtual absl::StatusOr<uint64_t> FileSize(const std::string& path) = 0;
  virtual bool Exists(const std::string& path) = 0;
  // Creates parents, too. An existing directory is fine.
  [[nodiscard]] virtual absl::Status CreateDirectory(const std::string& path) = 0;
  // Returns the names (not paths) in the directory, sorted.
  virtual absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) = 0;
  // Renames atomically within one directory; replaces the target.
  [[nodiscard]] virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  // Removes a file; NotFound if it doesn't exist.
  [[nodiscard]] virtual absl::Status Remove(const std::string& path) = 0;
  // Removes a directory and everything below it; OK if it doesn't exist.
  [[nodiscard]] virtual absl::Status RemoveTree(const std::string& path) = 0;
  // Makes renames and new names in the directory durable.
  [[nodiscard]] virtual absl::Status SyncDirectory(const std::string& path) = 0;
  // Takes the lock that the file at `path` stands for, and writes `holder` into the file. The file is created if
  // needed, and stays when the lock is released. Doesn't wait. FailedPrecondition: another holder has it, in this
  // process or another; the message is that holder's text. InvalidArgument: the path isn't a plain file with one name.
  // Unimplemented: this file system has no locks.
  virtual absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path, const std::string& holder) = 0;
};

// The machine's file system. Lives for the whole process.
FileSystem& PosixFileSystem();

// Writes a temporary file, syncs it, renames it and syncs the directory: a reader sees the old file or the whole new
// one. A link at `path` is replaced, and what it leads to stays as it is.
[[nodiscard]] absl::Status WriteFileAtomically(FileSystem& files, const std::string& path, ByteSpan bytes);

// Joins "a" and "b" to "a/b"; an absolute `name` wins.
std::string JoinPath(const std::string& directory, const std::string& name);

}  // namespace muster
