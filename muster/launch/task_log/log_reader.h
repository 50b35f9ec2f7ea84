// Reads the logs of an experiment's tasks as one, in the order of their times, from the beginning, and follows them as
// they grow: `muster logs -f`, `muster train`. Wakes by inotify. Not thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "muster/launch/task_log/log_format.h"
#include "muster/launch/task_log/log_watch.h"

namespace muster {

class LogReader {
 public:
  // `folders`: the logs folders to read (Home::logs), each with the prefix of its tasks' names ("", or "3." for a run).
  // `only`: these tasks, without prefix; empty: all. Folders and tasks that don't exist yet are found once they do.
  struct Source {
    std::string folder;
    std::string prefix;
  };
  // `is_local`: folders for which it returns false are looked into at each ReadMore instead of being watched.
  LogReader(std::vector<Source> folders, std::vector<std::string> only,
            LogWatch::IsLocal is_local = IsOnLocalFileSystem);
  ~LogReader();
  LogReader(const LogReader&) = delete;
  LogReader& operator=(const LogReader&) = delete;

  // Calls `take` once for every whole line that hasn't been read yet. Lines of one task keep their order, whatever
  // their times say; those of different tasks are ordered by time as far as they exist now (it doesn't wait for slow
  // tasks). Lines removed meanwhile (rotation) and damage are skipped and reported as a line of kind kMuster. Memory
  // doesn't grow with the logs. An unreadable log is an error naming it, returned after all others were read; the next
  // call tries it again.
  [[nodiscard]] absl::Status ReadMore(const std::function<void(const LogLineRecord& line)>& take);
  // Calls `take` with what stands now in lines that tasks overwrite (live_state.h) and has changed since the last call.
  void ReadLive(const std::function<void(const LogLineRecord& line)>& take);
  // May be called within `take`: ReadMore returns after this line, and the next call continues after it, without
  // waiting.
  void Pause();
  // Readable when there may be more; -1 if inotify isn't available for all folders: then call ReadMore now and then.
  int wake_fd() const;
  // Must be called before the first ReadMore: skips all but the last `lines` of each task that exists then.
  void StartAtLast(int lines);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster
