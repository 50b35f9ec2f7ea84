// A lock among the hosts that see a folder, for moments: the file that is made exclusively (O_EXCL) by the one who
// holds it. It works where flock doesn't, on network file systems, but outlives a holder that dies, so one that is
// older than kStale is taken away. Not thread-safe.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster {

class ExclusiveFile {
 public:
  // No holder may need longer.
  static constexpr absl::Duration kStale = absl::Seconds(30);

  // Makes the file; blocks while somebody else holds it, at most `patience`. Unavailable: that is over. Other errors
  // are those of ReplaceFile.
  static absl::StatusOr<ExclusiveFile> Take(const std::string& path, absl::Duration patience);
  ~ExclusiveFile();  // removes the file, unless it has been taken away meanwhile
  ExclusiveFile(ExclusiveFile&& other) noexcept;
  ExclusiveFile& operator=(ExclusiveFile&&) = delete;

 private:
  ExclusiveFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::string path_;
  int fd_;  // -1: it was moved from
};

}  // namespace muster
