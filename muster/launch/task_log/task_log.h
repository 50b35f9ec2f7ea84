// Stores a task's output on disk: one folder per task (logs/worker.1) with files 000001.log, 000002.log, …, of which
// the oldest are removed when all together exceed `most_bytes`. A line is
//
//   2026-01-31T07:23:46.123456Z o text        (o: stdout, e: stderr, s: a state, e.g. "RUNNING", m: of muster itself)
//
// with the text as written, without its line end; binary stays binary. docs/experiments/logs.md. Not thread-safe;
// one writer per task, any number of readers in other processes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "muster/launch/task_log/log_disk.h"
#include "muster/launch/task_log/log_format.h"
#include "muster/launch/task_log/logged_since.h"

namespace muster {

struct TaskLogOptions {
  std::string folder;  // made if missing; an existing log is continued (another attempt)
  int64_t most_bytes = 256 << 20;
  int64_t file_bytes = 16 << 20;  // at most a quarter of most_bytes
  // Longer lines are cut into several, between UTF-8 characters if the line is UTF-8.
  int64_t line_bytes = 64 << 10;
};

class TaskLog {
 public:
  // Never fails: what can't be written waits in memory (1 MiB) and is retried with every line. Lines beyond that are
  // counted, and the log later says so ("12 lines are missing here: no space left on device"). Borrows `disk`.
  explicit TaskLog(const TaskLogOptions& options, LogDisk& disk = PosixLogDisk());
  // Flushes.
  ~TaskLog();
  TaskLog(const TaskLog&) = delete;
  TaskLog& operator=(const TaskLog&) = delete;

  // Adds one line, without line end (a text of several lines counts as several). Buffers up to 32 KiB: Flush makes it
  // visible to readers. Blocks only for an occasional write(2).
  void Add(absl::Time when, LogKind kind, std::string_view text);
  void Flush();

  // Returns up to where the log is written: what was added since the last Flush may be missing.
  LogPlace end() const;
  // Returns whether lines wait that Flush couldn't write.
  bool waits() const;
  // Returns how many lines in total didn't fit into memory while nothing could be written.
  int64_t lost_lines() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster
