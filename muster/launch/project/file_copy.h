// Copies and hashes single files of a project. If the project changes meanwhile, errors are Aborted and name the file:
// try again. Blocking; stateless, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

struct FileContents {
  int64_t bytes = 0;
  std::string digest;  // SHA-256, 32 bytes
};

// Hashes a regular file up to its size at the start; what is appended meanwhile is ignored.
absl::StatusOr<FileContents> HashFile(const std::string& path);

// Reads a regular file from its beginning, piece by piece. Not thread-safe.
class FileReader {
 public:
  static absl::StatusOr<FileReader> Open(const std::string& path);
  ~FileReader();
  FileReader(FileReader&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileReader& operator=(FileReader&&) = delete;

  // Reads exactly so many bytes. DataLoss: it has become shorter, or can't be read any more.
  [[nodiscard]] absl::Status Read(char* into, size_t bytes);

 private:
  explicit FileReader(int fd) : fd_(fd) {}

  int fd_;
};

// Makes `to`, which must not exist, with the default permissions of a new file or program. Uses a reflink if the file
// system has them. A full disk is an error that names the folder; a part of the file may remain.
[[nodiscard]] absl::Status CopyFileOnce(const std::string& from, const std::string& to, bool executable);

// Returns the contents of the copy, even if the file changes meanwhile.
absl::StatusOr<FileContents> CopyAndHashFile(const std::string& from, const std::string& to, bool executable);

}  // namespace muster
