#include "muster/launch/task_log/log_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"

namespace muster {
namespace {

constexpr int64_t kLogStreamBackwards = 64 << 10;

// A file that is open for reading while this object lives.
class LogStreamFile {
 public:
  explicit LogStreamFile(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~LogStreamFile() {
    if (fd_ >= 0) close(fd_);
  }
  LogStreamFile(const LogStreamFile&) = delete;
  LogStreamFile& operator=(const LogStreamFile&) = delete;

  bool is_open() const { return fd_ >= 0; }

  int64_t size() const {
    struct stat info = {};
    return fstat(fd_, &info) == 0 ? info.st_size : 0;
  }

  // Reads as many bytes as there are, at most `most`. Returns false and errno if they can't be read.
  bool ReadAt(int64_t offset, size_t most, std::string& into) const {
    into.resize(most);
    size_t have = 0;
    while (have < most) {
      const ssize_t got = pread(fd_, into.data() + have, most - have, offset + static_cast<int64_t>(have));
      if (got == 0) break;
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return false;
      have += got;
    }
    into.resize(have);
    return true;
  }

 private:
  const int fd_;
};

// Returns where the last `lines` lines of a file begin. If it has fewer, returns nullopt and reduces `lines` to how
// many are still needed. Text after the last line end counts as a line, except in the newest file, where the line isn't
// finished yet.
std::optional<int64_t> OffsetOfLastLines(const std::string& path, bool newest, int& lines) {
  const LogStreamFile file(path);
  if (!file.is_open()) return std::nullopt;
  const int64_t size = file.size();
  std::string piece;
  for (int64_t end = size; end > 0;) {
    const int64_t begin = std::max<int64_t>(0, end - kLogStreamBackwards);
    if (!file.ReadAt(begin, end - begin, piece)) return std::nullopt;
    if (end == size && !newest && !piece.empty() && piece.back() != '\n') --lines;
    for (size_t at = piece.size(); at-- > 0;) {
      if (piece[at] != '\n') continue;
      if (lines == 0) return begin + static_cast<int64_t>(at) + 1;
      --lines;
    }
    end = begin;
  }
  return lines == 0 ? std::optional<int64_t>(0) : std::nullopt;
}

}  // namespace

void LogStream::StartAtLast(int lines) {
  const std::vector<int64_t> numbers = LogFileNumbers(folder_);
  for (size_t i = numbers.size(); i-- > 0;) {
    const auto offset = OffsetOfLastLines(PathOf(numbers[i]), i + 1 == numbers.size(), lines);
    if (!offset.has_value()) continue;
    BeginFile(numbers[i]);
    offset_ = *offset;
    removed_ = false;  // earlier lines weren't asked for
    return;
  }
}

bool LogStream::Advance(size_t piece) {
  status_ = absl::OkStatus();
  has_line_ = true;
  if (holds_line_) {
    holds_line_ = false;
    line_ = held_;
    return true;
  }
  for (;;) {
    const std::string_view rest = std::string_view(piece_).substr(at_);
    const size_t end = rest.find('\n');
    if (end != std::string_view::npos) {
      at_ += end + 1;
      offset_ += static_cast<int64_t>(end) + 1;
      if (TakeLine(rest.substr(0, end))) return true;
    } else if (!Fill(piece)) {
      std::string().swap(piece_);
      at_ = 0;
      if (damaged_ == 0) break;
      TakeNote(last_when_);
      return true;
    }
  }
  has_line_ = false;
  return false;
}

// Returns true if the line, or a note before it, is the next one.
bool LogStream::TakeLine(std::string_view line) {
  if (in_damage_) {
    in_damage_ = false;
    damaged_ += static_cast<int64_t>(line.size()) + 1;
    return false;
  }
  LogLineRecord parsed;
  if (!format_.Parse(line, parsed)) {
    if (!IsTornLogLine(line)) damaged_ += static_cast<int64_t>(line.size()) + 1;
    return false;
  }
  parsed.task = name_;
  last_when_ = parsed.when;
  line_ = parsed;
  if (removed_ || damaged_ > 0) {
    held_ = parsed;
    holds_line_ = true;
    TakeNote(parsed.when);
  }
  return true;
}

void LogStream::TakeNote(absl::Time when) {
  note_ = removed_ ? "older lines were removed here, to keep the log within its size" : "";
  if (damaged_ > 0)
    absl::StrAppend(&note_, note_.empty() ? "" : "; ", damaged_, " bytes before this are no log lines, but damage");
  removed_ = false;
  damaged_ = 0;
  line_ = {.task = name_, .when = when, .kind = LogKind::kMuster, .text = note_};
}

// Reads on at offset_, through the next files, until piece_ contains a line end. Returns false if there is no whole
// line.
bool LogStream::Fill(size_t piece) {
  if (file_ == 0) {
    const int64_t first = LaterFile();
    if (first == 0) return false;
    BeginFile(first);
  }
  for (size_t want = piece;;) {
    const Found found = ReadPiece(want);
    if (found == Found::kError) return false;
    if (found == Found::kGone) {
      const int64_t next = LaterFile();
      if (next == 0) return false;
      removed_ = true;
      BeginFile(next);
      continue;
    }
    if (piece_.find('\n') != std::string::npos) return true;
    if (piece_.size() == want) {
      if (!PassOverDamage()) want = std::min(2 * want, kMostLogLine);
      continue;
    }
    // The file's end, at least for now. Only a read after a later file has appeared is certain to get everything.
    const int64_t next = LaterFile();
    if (next == 0) return false;
    if (!complete_) {
      complete_ = true;
      continue;
    }
    if (!piece_.empty()) {  // its writer was killed within a line
      piece_ += '\n';
      return true;
    }
    BeginFile(next);
  }
}

LogStream::Found LogStream::ReadPiece(size_t piece) {
  at_ = 0;
  piece_.clear();
  const std::string path = PathOf(file_);
  const LogStreamFile file(path);
  if (!file.is_open() && errno == ENOENT) return Found::kGone;
  if (file.is_open() && file.ReadAt(offset_, piece, piece_)) return Found::kBytes;
  status_ = absl::ErrnoToStatus(errno, absl::StrCat("can't read the log ", path));
  return Found::kError;
}

// Skips piece_ if it is longer than any line can be.
bool LogStream::PassOverDamage() {
  if (piece_.size() < kMostLogLine) return false;
  damaged_ += static_cast<int64_t>(piece_.size());
  offset_ += static_cast<int64_t>(piece_.size());
  in_damage_ = true;
  return true;
}

// Returns the first file after the current one; 0 if there is none.
int64_t LogStream::LaterFile() const {
  for (const int64_t number : LogFileNumbers(folder_))
    if (number > file_) return number;
  return 0;
}

void LogStream::BeginFile(int64_t number) {
  if (number != file_ + 1) removed_ = true;
  file_ = number;
  offset_ = 0;
  complete_ = false;
}

std::string LogStream::PathOf(int64_t number) const { return JoinPath(folder_, LogFileName(number)); }

}  // namespace muster
