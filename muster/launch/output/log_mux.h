// Makes one readable log of what many tasks write: cuts it into lines and puts "[worker:1] " before each, coloured if
// wanted; keeps the last lines of each task for the report of a failure; and copies each task's lines to a file of its
// own if asked. Does no waiting: lines go to the function it is given. Not thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "muster/base/files/file_system.h"
#include "muster/launch/backends/backend.h"
#include "muster/launch/output/line_cutter.h"

namespace muster {

struct LogMuxOptions {
  bool color_stdout = false;
  bool color_stderr = false;
  // Where each task's lines also go, as "worker-1.log", without prefix; empty: nowhere. Made if it isn't there.
  std::string log_dir;
  // How many last lines are kept of each task.
  size_t last_lines = 10;
  // A longer line is cut into several, so that a task that never ends one can't fill the memory.
  size_t max_line_bytes = 64 << 10;
};

class LogMux {
 public:
  // Takes whole lines, prefix and line end included.
  using Sink = std::function<void(OutputStream stream, std::string_view lines)>;

  // `files` must outlive it.
  LogMux(const LogMuxOptions& options, FileSystem& files, Sink sink);

  // Before a task's first output. An error if its log file can't be written.
  [[nodiscard]] absl::Status AddTask(const TaskId& task);
  // Any piece of output of a task that was added.
  void Take(const TaskId& task, OutputStream stream, std::string_view bytes);
  // The task writes no more: an unfinished last line counts as one.
  void Finish(const TaskId& task);
  // A line of the launcher's own, without line end, on stderr.
  void Say(std::string_view line);

  // The last lines of the task, of both streams, oldest first, without prefix.
  const std::deque<std::string>& LastLines(const TaskId& task) const { return tasks_.at(task).last_lines; }

 private:
  struct Task {
    std::string prefix[2];  // by stream
    LineCutter lines[2];    // by stream
    std::deque<std::string> last_lines;
    std::unique_ptr<WritableFile> log;
  };

  void TakeLine(Task& task, std::string_view line, const std::string& prefix, std::string& out);
  void WriteLog(Task& task, std::string_view line);

  // Constant after construction.
  const LogMuxOptions options_;
  FileSystem& files_;
  const Sink sink_;

  std::map<TaskId, Task> tasks_;
};

}  // namespace muster
