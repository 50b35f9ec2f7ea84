// The trace of a run: the parts that its tasks write, in a folder of the launcher's own, and what becomes of them when
// the run has ended, however it has. Used by one thread.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "muster/base/files/file_system.h"
#include "muster/cluster/task_id.h"

namespace muster {

class RunTrace {
 public:
  // The folder for the parts of `file`. InvalidArgument: `file`, or the folder beside it, can't be written. `files`
  // must outlive it.
  static absl::StatusOr<RunTrace> Begin(FileSystem& files, const std::string& file, const std::string& run_id);

  // What MUSTER_TRACE says to the tasks.
  std::string parts() const;
  // The task is about to be started again: the part of its last life stays.
  void NewLife(const TaskId& task);
  // All have ended: one trace of all parts, and the table of where the steps' time went, line by line to `say`. The
  // parts are removed, unless something fails.
  void Finish(const std::function<void(const std::string& line)>& say);

 private:
  RunTrace(FileSystem& files, std::string file, std::string folder)
      : files_(&files), file_(std::move(file)), folder_(std::move(folder)) {}
  [[nodiscard]] absl::Status Merge(const std::function<void(const std::string& line)>& say);

  FileSystem* files_;
  std::string file_;
  std::string folder_;
  int lives_ = 0;
};

}  // namespace muster
