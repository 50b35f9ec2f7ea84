// Single files of a project, copied and hashed. Errors that come from the project being changed meanwhile are Aborted
// and name the file: trying again helps. Blocking; stateless, thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

struct FileContents {
  int64_t bytes = 0;
  std::string digest;  // SHA-256, 32 bytes
};

// Of a regular file, as long as it is at the beginning; one that grows meanwhile isn't followed.
absl::StatusOr<FileContents> HashFile(const std::string& path);

// Makes `to`, which must not exist, with the rights that a new file has here, or a new program. A reflink where the
// file system has them. A full disk: an error that names the folder; a part of the file may be there then.
[[nodiscard]] absl::Status CopyFileOnce(const std::string& from, const std::string& to, bool executable);

// The contents returned are those of the copy, whatever happens to the file meanwhile.
absl::StatusOr<FileContents> CopyAndHashFile(const std::string& from, const std::string& to, bool executable);

}  // namespace muster
