// Reads the logs of an experiment's tasks as one, in the order of their times, from the beginning, and goes on with
// what is added: `muster logs -f`, `muster train`. Wakes by inotify. Not thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/launch/task_log/task_log.h"

namespace muster {

struct LogLineRecord {
  std::string_view task;  // name of the task's folder below the logs: "worker.1"; runs of a grid: "3.worker.1"
  absl::Time when;
  LogKind kind;
  std::string_view text;  // raw
};

class LogReader {
 public:
  // `folders`: the logs folders to read (Home::logs), each with what its tasks are prefixed by ("", or "3." for a run).
  // `only`: these tasks; empty: all. Folders and tasks that aren't there yet are found when they come.
  struct Source {
    std::string folder;
    std::string prefix;
  };
  LogReader(std::vector<Source> folders, std::vector<std::string> only);
  ~LogReader();
  LogReader(const LogReader&) = delete;
  LogReader& operator=(const LogReader&) = delete;

  // Calls `take` for every whole line that is there and hasn't been read. What was removed meanwhile (rotation) is
  // passed over, and told as a line of kind kMuster. Memory doesn't grow with the logs.
  [[nodiscard]] absl::Status ReadMore(const std::function<void(const LogLineRecord& line)>& take);
  // Readable when there may be more; -1 where inotify can't be had: then ask again after a while.
  int wake_fd() const;
  // Only the last `lines` of each task, when called before the first ReadMore.
  void StartAtLast(int lines);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// As it is shown: "4.worker.1 | [2026-01-31T07:23:46Z] --> RUNNING" for a state, "4.worker.1 | text" otherwise, `name`
// padded to `width`. Control characters and bytes that aren't UTF-8 are shown as \xNN (tabs and colours, ESC [ … m,
// stay where `color` is, colours are dropped otherwise).
std::string ShownLine(std::string_view name, size_t width, const LogLineRecord& line, bool color);

}  // namespace muster
