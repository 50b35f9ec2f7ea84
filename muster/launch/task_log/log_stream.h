// One task's log as a sequence of lines, through all its files, while they grow, are rotated, removed or damaged. Keeps
// no file open and only a piece of one in memory, so that thousands are possible. Not thread-safe.
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
  // `folder` may be missing as yet. `name`: LogLineRecord::task.
  LogStream(std::string folder, std::string name) : folder_(std::move(folder)), name_(std::move(name)) {}
  LogStream(const LogStream&) = delete;
  LogStream& operator=(const LogStream&) = delete;

  // Skips all but the last `lines` that exist now. Must be called before the first Advance.
  void StartAtLast(int lines);

  // Goes to the next whole line; returns false if there is none yet. Reads `piece` bytes at a time, or a line if that
  // is longer.
  bool Advance(size_t piece);
  bool has_line() const { return has_line_; }
  // Valid until the next Advance.
  const LogLineRecord& line() const { return line_; }

  // Returns why the last attempt to read failed.
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

  int64_t file_ = 0;       // number; 0: none found yet
  int64_t offset_ = 0;     // in that file, of piece_[at_]
  bool complete_ = false;  // a later file exists, so this one doesn't grow any more
  std::string piece_;
  size_t at_ = 0;
  bool in_damage_ = false;  // the start of the line at piece_[at_] was skipped as damage

  // Reported before the next line.
  bool removed_ = false;
  int64_t damaged_ = 0;  // bytes

  LogLineFormat format_;
  bool has_line_ = false;
  LogLineRecord line_;
  bool holds_line_ = false;  // the line after the note
  LogLineRecord held_;
  std::string note_;
  absl::Time last_when_ = absl::UnixEpoch();
  absl::Status status_;
};

}  // namespace muster
