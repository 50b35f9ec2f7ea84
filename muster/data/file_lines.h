// Reads the lines of a file one after the other, a block at a time: takes memory for one block and one line, however
// long the file is. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/base/files/file_system.h"

namespace muster {

class FileLines {
 public:
  // A longer line is an error: such a file isn't lines of text.
  static constexpr size_t kLongestLine = size_t{16} << 20;

  // Borrows `system`. `block` is the number of bytes read at once.
  FileLines(FileSystem& system, std::string path, size_t block = size_t{256} << 10);

  // Returns false at the end. `line` doesn't include the "\n" at its end, which the last line may lack; it is valid
  // until the next call. NotFound: there is no such file; DataLoss: it got shorter since the first call;
  // InvalidArgument: a line is too long.
  absl::StatusOr<bool> Next(std::string_view& line);

 private:
  [[nodiscard]] absl::Status ReadBlock();

  // Constant after construction.
  FileSystem& system_;
  const std::string path_;
  const size_t block_;

  bool opened_ = false;
  uint64_t size_ = 0;  // of the file when it was opened
  uint64_t read_ = 0;  // so far
  uint64_t lines_ = 0;
  std::string buffer_;
  size_t begin_ = 0;  // start of what is in the buffer and not handed out
};

}  // namespace muster
