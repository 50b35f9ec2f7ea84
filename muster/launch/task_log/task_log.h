// What tasks write, kept on disk: a folder a task (logs/worker.1), in it files 000001.log, 000002.log, … of which the
// oldest are removed when all together have more than `most_bytes`. A line is
//
//   2026-01-31T07:23:46.123456Z o text        (o: stdout, e: stderr, s: a state, e.g. "RUNNING", m: of muster itself)
//
// the text as it was written but for the line end; binary stays binary. docs/experiments.md, "Logs". Not thread-safe;
// one writer a task, any number of readers in other processes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace muster {

enum class LogKind : char { kStdout = 'o', kStderr = 'e', kState = 's', kMuster = 'm' };

struct TaskLogOptions {
  std::string folder;  // made if it isn't there; what is there is continued (another attempt)
  int64_t most_bytes = 256 << 20;
  int64_t file_bytes = 16 << 20;
  // A longer line is cut into several.
  int64_t line_bytes = 64 << 10;
};

class TaskLog {
 public:
  // Never fails: what can't be written is counted, tried again with the next line, and said in the log when it can be
  // ("12 lines are missing here: no space left on device").
  explicit TaskLog(const TaskLogOptions& options);
  ~TaskLog();
  TaskLog(const TaskLog&) = delete;
  TaskLog& operator=(const TaskLog&) = delete;

  // One line, without line end. Buffered: Flush makes it visible to readers.
  void Add(absl::Time when, LogKind kind, std::string_view text);
  void Flush();

  int64_t lost_lines() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster
