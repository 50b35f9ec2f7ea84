// Merges the output of many tasks into one readable log: cuts it into lines and puts "[worker:1] " before each,
// coloured if wanted. Keeps the last lines of each task for the report of a failure, and copies each task's lines to a
// file of its own if asked. Never waits: passes lines to a function. Not thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/files/file_system.h"
#include "muster/launch/backends/backend.h"
#include "muster/launch/output/line_cutter.h"

namespace muster {

struct LogMuxOptions {
  bool color_stdout = false;
  bool color_stderr = false;
  // Also pass on what stands in a line that a task overwrites, such as a progress bar, once a second: for a terminal.
  // Otherwise only its last state comes, as everywhere else.
  bool live_stdout = false;
  bool live_stderr = false;
  // Folder where each task's lines also go, as "worker-1.log", without prefix; made if missing. Empty: no files.
  std::string log_dir;
  // How many of each task's last lines are kept.
  size_t last_lines = 10;
  // Longer lines are cut into several, so that a task that never ends its line can't fill the memory.
  size_t max_line_bytes = 64 << 10;
};

class LogMux {
 public:
  // Takes whole lines, prefix and line end included.
  using Sink = std::function<void(OutputStream stream, std::string_view lines)>;

  // `files` and `clock` must outlive it.
  LogMux(const LogMuxOptions& options, FileSystem& files, Sink sink, const Clock& clock = RealClock());

  // Must be called before a task's first output. Returns an error if the task's log file can't be written.
  [[nodiscard]] absl::Status AddTask(const TaskId& task);
  // Takes any piece of output of a task that was added.
  void Take(const TaskId& task, OutputStream stream, std::string_view bytes);
  // Must be called when the task writes no more: an unfinished last line counts as one.
  void Finish(const TaskId& task);
  // Writes a line of the launcher's own, without line end, to stderr.
  void Say(std::string_view line);

  // Returns the last lines of the task, of both streams, oldest first, without prefix.
  const std::deque<std::string>& LastLines(const TaskId& task) const { return tasks_.at(task).last_lines; }

 private:
  struct Task {
    std::string prefix[2];                      // by stream
    LineCutter lines[2];                        // by stream
    absl::Time live_at = absl::InfinitePast();  // when a live state was last passed on
    std::deque<std::string> last_lines;
    std::unique_ptr<WritableFile> log;
  };

  bool IsLiveDue(const Task& task, OutputStream stream) const;
  void TakeLine(Task& task, std::string_view line, const std::string& prefix, std::string& out);
  void WriteLog(Task& task, std::string_view line);

  // Constant after construction.
  const LogMuxOptions options_;
  FileSystem& files_;
  const Sink sink_;
  const Clock& clock_;

  std::map<TaskId, Task> tasks_;
};

}  // namespace muster
