// Reads the logs of an experiment's tasks as one, in the order of their times, from the beginning, and goes on with
// what is added: `muster logs -f`, `muster train`. Wakes by inotify. Not thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "muster/launch/task_log/log_format.h"

namespace muster {

class LogReader {
 public:
  // `folders`: the logs folders to read (Home::logs), each with what its tasks are prefixed by ("", or "3." for a run).
  // `only`: these tasks, without prefix; empty: all. Folders and tasks that aren't there yet are found when they come.
  struct Source {
    std::string folder;
    std::string prefix;
  };
  LogReader(std::vector<Source> folders, std::vector<std::string> only);
  ~LogReader();
  LogReader(const LogReader&) = delete;
  LogReader& operator=(const LogReader&) = delete;

  // Calls `take` for every whole line that is there and hasn't been read, once each: those of a task in their order,
  // whatever their times say, and those of different tasks by their times as far as they are there now (nobody is
  // waited for). What was removed meanwhile (rotation) is passed over, and told as a line of kind kMuster; so is
  // damage. Memory doesn't grow with the logs. A log that can't be read is an error naming it, after all others were
  // read; it is tried again by the next call.
  [[nodiscard]] absl::Status ReadMore(const std::function<void(const LogLineRecord& line)>& take);
  // Within `take`: ReadMore returns after this line, and the next call goes on behind it, without having to wait.
  void Pause();
  // Readable when there may be more; -1 where inotify can't be had for all: then ask again after a while.
  int wake_fd() const;
  // Only the last `lines` of each task that is there by the first ReadMore, when called before it.
  void StartAtLast(int lines);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster
