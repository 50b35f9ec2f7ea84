// One task's log as lines, one after the other, through its files and whatever becomes of them: written on, rotated,
// removed, damaged. No file stays open and no more than a piece of one is in memory, so that there can be thousands.
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/launch/task_log/log_format.h"

namespace muster {

class LogStream {
 public:
  // `folder` needn't be there yet. `name`: LogLineRecord::task.
  LogStream(std::string folder, std::string name) : folder_(std::move(folder)), name_(std::move(name)) {}
  LogStream(const LogStream&) = delete;
  LogStream& operator=(const LogStream&) = delete;

  // Passes over everything but the last `lines` that there are now. Before the first Advance.
  void StartAtLast(int lines);

  // To the next whole line; false: there is none now. Reads `piece` bytes at a time, or a line if that is longer.
  bool Advance(size_t piece);
  bool has_line() const { return has_line_; }
  // Valid until the next Advance.
  const LogLineRecord& line() const { return line_; }

  // What kept it from being read, the last time it was tried.
  const absl::Status& status() const { return status_; }

 private:
  bool Fill(size_t piece);
  enum class Found { kBytes, kGone, kError };
  Found ReadPiece(size_t piece);
  bool PassOverDamage();
  int64_t LaterFile() const;
  void BeginFile(int64_t number);
  bool TakeLine(std::string_view line);
  void TakeNote(absl::Time when);
  std::string PathOf(int64_t number) const;

  // Constant after construction.
  const std::string folder_;
  const std::string name_;

  int64_t file_ = 0;       // number; 0: none has been found
  int64_t offset_ = 0;     // in it, of piece_[at_]
  bool complete_ = false;  // a later file has been seen: nothing is added any more to this one
  std::string piece_;
  size_t at_ = 0;
  bool in_damage_ = false;  // of the line that piece_[at_] belongs to the beginning has been passed over

  // To be said before the next line.
  bool removed_ = false;
  int64_t damaged_ = 0;  // bytes

  LogLineFormat format_;
  bool has_line_ = false;
  LogLineRecord line_;
  bool holds_line_ = false;  // the line behind the note
  LogLineRecord held_;
  std::string note_;
  absl::Time last_when_ = absl::UnixEpoch();
  absl::Status status_;
};

}  // namespace muster
