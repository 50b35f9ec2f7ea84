// What tasks write, kept on disk: a folder a task (logs/worker.1), in it files 000001.log, 000002.log, … of which the
// oldest are removed when all together have more than `most_bytes`. A line is
//
//   2026-01-31T07:23:46.123456Z o text        (o: stdout, e: stderr, s: a state, e.g. "RUNNING", m: of muster itself)
//
// the text as it was written but for the line end; binary stays binary. docs/experiments/logs.md. Not thread-safe;
// one writer a task, any number of readers in other processes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "muster/launch/task_log/log_disk.h"
#include "muster/launch/task_log/log_format.h"

namespace muster {

struct TaskLogOptions {
  std::string folder;  // made if it isn't there; what is there is continued (another attempt)
  int64_t most_bytes = 256 << 20;
  int64_t file_bytes = 16 << 20;  // at most a quarter of most_bytes
  // A longer line is cut into several, between characters of UTF-8 where it is that.
  int64_t line_bytes = 64 << 10;
};

class TaskLog {
 public:
  // Never fails: what can't be written waits in memory (1 MiB), tried again with every line; lines beyond that are
  // counted and said in the log when it can be ("12 lines are missing here: no space left on device"). Borrows `disk`.
  explicit TaskLog(const TaskLogOptions& options, LogDisk& disk = PosixLogDisk());
  // Flushes.
  ~TaskLog();
  TaskLog(const TaskLog&) = delete;
  TaskLog& operator=(const TaskLog&) = delete;

  // One line, without line end (a text of several lines is taken as that). Buffered, up to 32 KiB: Flush makes it
  // visible to readers. Blocks for a write(2) now and then, never for anything else.
  void Add(absl::Time when, LogKind kind, std::string_view text);
  void Flush();

  // That didn't fit into memory while nothing could be written, of all its time.
  int64_t lost_lines() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster
