#include "muster/launch/task_log/task_log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/launch/output/character_cut.h"

namespace muster {
namespace {

constexpr size_t kTaskLogWriteAt = 32 << 10;
constexpr size_t kTaskLogMostWaiting = 1 << 20;

// Returns "no space left on device".
std::string TaskLogErrorText(int error) {
  std::string text = std::generic_category().message(error);
  if (!text.empty()) text[0] = absl::ascii_tolower(static_cast<unsigned char>(text[0]));
  return text;
}

}  // namespace

struct TaskLog::Impl {
  Impl(const TaskLogOptions& options, LogDisk& disk);
  ~Impl();

  void AddLine(absl::Time when, LogKind kind, std::string_view text);
  void Flush();
  bool waits() const { return !waiting_.empty(); }
  LogPlace end() const {
    return files_.empty() ? LogPlace() : LogPlace{.file = files_.back().number, .bytes = files_.back().bytes};
  }

  // Constant after construction.
  const std::string folder;
  const int64_t most_bytes;
  const int64_t file_bytes;
  const size_t line_bytes;
  LogDisk& disk;

  int64_t lost = 0;  // lines

 private:
  struct File {
    int64_t number;
    int64_t bytes;
  };

  bool HasRoom() const { return waiting_.size() < kTaskLogMostWaiting; }
  void SayLost();
  // Writes what waits, as far as possible.
  void WriteOut();
  bool ListFiles();
  bool Open();
  void ContinueFile();
  void CloseFile();
  size_t PieceBytes() const;
  void MakeRoom(size_t bytes);

  std::deque<File> files_;  // by number; the last is being written. Empty: not listed yet
  int fd_ = -1;             // of the last file; -1: not open
  bool mid_line_ = false;   // the file doesn't end with a line end
  std::string waiting_;     // not written yet
  size_t written_ = 0;      // of waiting_
  LogLineFormat format_;
  int64_t unsaid_lost_ = 0;
  absl::Time last_when_;
  int error_ = 0;  // of the last failure
};

TaskLog::Impl::Impl(const TaskLogOptions& options, LogDisk& disk)
    : folder(options.folder),
      most_bytes(std::max<int64_t>(options.most_bytes, 4)),
      file_bytes(std::clamp<int64_t>(options.file_bytes, 1, most_bytes / 4)),
      line_bytes(std::clamp<int64_t>(options.line_bytes, 1, kMostLogLine - kLogLineHead - 1)),
      disk(disk) {}

TaskLog::Impl::~Impl() {
  Flush();
  CloseFile();
}

void TaskLog::Impl::AddLine(absl::Time when, LogKind kind, std::string_view text) {
  if (!HasRoom()) WriteOut();
  last_when_ = when;
  if (!HasRoom()) {
    ++lost;
    ++unsaid_lost_;
    return;
  }
  SayLost();
  format_.Append(when, kind, text, waiting_);
  if (waiting_.size() >= kTaskLogWriteAt) WriteOut();
}

void TaskLog::Impl::Flush() {
  WriteOut();
  if (unsaid_lost_ == 0 || !HasRoom()) return;
  SayLost();
  WriteOut();
}

// Only lines after the last waiting one have been lost, so this text stands where they are missing.
void TaskLog::Impl::SayLost() {
  if (unsaid_lost_ == 0) return;
  const std::string lines = unsaid_lost_ == 1 ? "1 line is" : absl::StrCat(unsaid_lost_, " lines are");
  format_.Append(last_when_, LogKind::kMuster, absl::StrCat(lines, " missing here: ", TaskLogErrorText(error_)),
                 waiting_);
  unsaid_lost_ = 0;
}

void TaskLog::Impl::WriteOut() {
  while (written_ < waiting_.size() && Open()) {
    const size_t piece = PieceBytes();
    if (piece == 0) {
      CloseFile();
      files_.push_back({files_.back().number + 1, 0});
      continue;
    }
    MakeRoom(piece);
    const int64_t done = disk.Write(fd_, std::string_view(waiting_).substr(written_, piece));
    if (done <= 0) {
      error_ = done < 0 ? static_cast<int>(-done) : ENOSPC;
      break;
    }
    written_ += done;
    files_.back().bytes += done;
    mid_line_ = waiting_[written_ - 1] != '\n';
  }
  waiting_.erase(0, written_);
  written_ = 0;
  if (waiting_.empty() && waiting_.capacity() > 4 * kTaskLogWriteAt) std::string().swap(waiting_);
}

// Lists the files; returns false if there is no folder and none can be made.
bool TaskLog::Impl::ListFiles() {
  if (!files_.empty()) return true;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    error_ = error.value();
    return false;
  }
  for (const int64_t number : LogFileNumbers(folder)) {
    struct stat info = {};
    if (stat(JoinPath(folder, LogFileName(number)).c_str(), &info) == 0) files_.push_back({number, info.st_size});
  }
  if (files_.empty()) files_.push_back({1, 0});
  return true;
}

bool TaskLog::Impl::Open() {
  if (fd_ >= 0) return true;
  if (!ListFiles()) return false;
  const int fd = disk.Open(JoinPath(folder, LogFileName(files_.back().number)));
  if (fd < 0) {
    error_ = -fd;
    return false;
  }
  fd_ = fd;
  if (files_.back().bytes > 0) ContinueFile();
  return true;
}

// An earlier attempt wrote the file and may have been killed within a line; ends that line.
void TaskLog::Impl::ContinueFile() {
  char last = '\n';
  if (pread(fd_, &last, 1, files_.back().bytes - 1) != 1 || last == '\n') return;
  waiting_.insert(waiting_.begin(), '\n');
  mid_line_ = true;
}

void TaskLog::Impl::CloseFile() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

// Returns how many of the waiting bytes to write to the open file: whole lines, or the rest of a begun one; 0: it is
// full.
size_t TaskLog::Impl::PieceBytes() const {
  const std::string_view rest = std::string_view(waiting_).substr(written_);
  if (mid_line_) return rest.find('\n') + 1;
  const int64_t room = file_bytes - files_.back().bytes;
  if (room > 0) {
    const size_t end = rest.substr(0, room).rfind('\n');
    if (end != std::string_view::npos) return end + 1;
  }
  return files_.back().bytes > 0 ? 0 : rest.find('\n') + 1;
}

void TaskLog::Impl::MakeRoom(size_t bytes) {
  int64_t all = static_cast<int64_t>(bytes);
  for (const File& file : files_) all += file.bytes;
  while (all > most_bytes && files_.size() > 1) {
    // Not retried if it fails: nobody waits for it, and the next attempt finds it.
    unlink(JoinPath(folder, LogFileName(files_.front().number)).c_str());
    all -= files_.front().bytes;
    files_.pop_front();
  }
}

TaskLog::TaskLog(const TaskLogOptions& options, LogDisk& disk) : impl_(std::make_unique<Impl>(options, disk)) {}

TaskLog::~TaskLog() = default;

void TaskLog::Add(absl::Time when, LogKind kind, std::string_view text) {
  for (;;) {
    const size_t end = text.substr(0, impl_->line_bytes + 1).find('\n');
    if (end != std::string_view::npos) {
      impl_->AddLine(when, kind, text.substr(0, end));
      text.remove_prefix(end + 1);
    } else if (text.size() > impl_->line_bytes) {
      const size_t cut = CharacterCut(text, impl_->line_bytes);
      impl_->AddLine(when, kind, text.substr(0, cut));
      text.remove_prefix(cut);
    } else {
      return impl_->AddLine(when, kind, text);
    }
  }
}

void TaskLog::Flush() { impl_->Flush(); }

LogPlace TaskLog::end() const { return impl_->end(); }

bool TaskLog::waits() const { return impl_->waits(); }

int64_t TaskLog::lost_lines() const { return impl_->lost; }

}  // namespace muster
