// The logs of one run as its supervisor writes them: a TaskLog for each task and one for the run itself
// (kExperimentLog), made at the first write. Cuts the tasks' output into lines and keeps the last lines of each; lets
// readers see, at most once a second, what stands in a line that a task overwrites. Never fails or waits: a log counts
// what it can't store. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/clock.h"
#include "muster/launch/backends/backend.h"
#include "muster/launch/output/line_cutter.h"
#include "muster/launch/registry/run_state.h"
#include "muster/launch/task_log/log_format.h"
#include "muster/launch/task_log/logged_since.h"
#include "muster/launch/task_log/task_log.h"

namespace muster {

struct TaskLogsOptions {
  std::string folder;              // Home::logs
  int64_t most_bytes = 256 << 20;  // of each log
  size_t last_lines = 10;
};

class TaskLogs {
 public:
  // Borrows `clock`, which must outlive it.
  TaskLogs(const TaskLogsOptions& options, const Clock& clock) : options_(options), clock_(clock) {}

  // Takes any piece of a task's output.
  void Take(const TaskId& task, OutputStream stream, std::string_view bytes);
  // Must be called when the task's process has ended: an unfinished line counts as one. The task may write again later.
  void Finish(const TaskId& task);
  void AddState(const TaskId& task, RunState state);
  // Adds a state of the run.
  void AddState(RunState state);
  // Adds one or more lines of muster's own to the run's log.
  void Say(std::string_view text);
  // Makes all that was added visible to readers, the run's own lines last: a reader that sees the run's end also sees
  // all that its tasks have written.
  void Flush();

  // So many bytes of the output will not come.
  void Skip(const TaskId& task, OutputStream stream, uint64_t bytes);
  // Returns how much of what the task's process has written is in the log, in whole lines; nullopt: the disk is full,
  // so that lines wait. Call it after Flush.
  std::optional<LoggedOutput> Logged(const TaskId& task) const;
  // The next output is that of a process of which at least so much is in the log. Returns how much it is. Must be
  // called before the task's log is written.
  LoggedOutput GoOn(const TaskId& task, const LoggedOutput& known);
  // Returns the last lines of both streams, oldest first. Empty: the task has written nothing.
  std::deque<std::string> LastLines(const TaskId& task) const;

 private:
  struct Log {
    std::string folder;
    std::unique_ptr<TaskLog> file;
    LineCutter lines[2];                    // by stream
    uint64_t taken[2] = {}, whole[2] = {};  // bytes of the process's output: all, and in whole lines
    LogPlace end_before;                    // of what an earlier supervisor has written
    std::deque<std::string> last_lines;
    bool unflushed = false;  // it is one of unflushed_
    bool has_live = true;    // a live state is on disk, maybe of an earlier attempt
    absl::Time live_at = absl::InfinitePast();
  };

  Log& Of(const std::string& folder);
  void Add(Log& log, LogKind kind, std::string_view text);
  void MustFlush(Log& log);
  void ShowLive(Log& log) const;
  void AddLine(Log& log, OutputStream stream, std::string_view line);
  void ReadLastLines(Log& log) const;
  void KeepAsLast(Log& log, std::string_view line) const;

  // Constant after construction.
  const TaskLogsOptions options_;
  const Clock& clock_;

  std::map<std::string, Log> logs_;  // by folder: "worker.1"
  std::vector<Log*> unflushed_;      // few of them, usually: a flush follows every round of the loop
};

}  // namespace muster
