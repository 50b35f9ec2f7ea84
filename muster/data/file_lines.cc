#include "muster/data/file_lines.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/bytes.h"
#include "muster/base/check.h"
#include "muster/base/status_macros.h"

namespace muster {

FileLines::FileLines(FileSystem& system, std::string path, size_t block)
    : system_(system), path_(std::move(path)), block_(block) {
  MUSTER_CHECK(block > 0);
}

absl::StatusOr<bool> FileLines::Next(std::string_view& line) {
  if (!opened_) {
    ASSIGN_OR_RETURN(size_, system_.FileSize(path_));
    opened_ = true;
  }
  size_t seen = 0;  // bytes of the line searched without finding its end
  for (;;) {
    const std::string_view rest = std::string_view(buffer_).substr(begin_);
    const size_t end = rest.find('\n', seen);
    if (end == std::string_view::npos && read_ < size_) {
      seen = rest.size();
      RETURN_IF_ERROR(ReadBlock());
      continue;
    }
    if (rest.empty()) return false;
    line = rest.substr(0, end);
    begin_ += end == std::string_view::npos ? rest.size() : end + 1;
    ++lines_;
    return true;
  }
}

absl::Status FileLines::ReadBlock() {
  const size_t left = buffer_.size() - begin_;
  if (left > kLongestLine) {
    return absl::InvalidArgumentError(absl::StrCat(path_, ", line ", lines_ + 1, ": the line is longer than ",
                                                   kLongestLine >> 20, " MiB; lines of text are expected"));
  }
  buffer_.erase(0, begin_);
  begin_ = 0;
  const size_t piece = std::min<uint64_t>(block_, size_ - read_);
  buffer_.resize(left + piece);
  if (const absl::Status status = system_.ReadAt(path_, read_, AsMutableBytes(buffer_.data() + left, piece));
      !status.ok()) {
    buffer_.resize(left);
    return status;
  }
  read_ += piece;
  return absl::OkStatus();
}

}  // namespace muster
