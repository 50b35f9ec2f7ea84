// The trace of a run. Its tasks write parts of it to a temporary folder, which are merged when the run has ended,
// whether well or not. Used by one thread.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "muster/base/files/file_system.h"
#include "muster/cluster/task_id.h"

namespace muster {

class RunTrace {
 public:
  // Makes the folder for the parts of `file`. InvalidArgument: `file`, or the folder beside it, can't be written.
  // `files` must outlive it.
  static absl::StatusOr<RunTrace> Begin(FileSystem& files, const std::string& file, const std::string& run_id);

  // Returns the tasks' value of MUSTER_TRACE.
  std::string parts() const;
  // Must be called before the task is restarted; keeps the part of its last life.
  void NewLife(const TaskId& task);
  // Must be called when all tasks have ended. Merges the parts into one trace and passes the table of where the steps'
  // time went to `say`, line by line. Removes the parts, unless something fails.
  void Finish(const std::function<void(const std::string& line)>& say);
  // Must be called instead if the run never began: removes what Begin has made.
  void Drop() {
    files_->RemoveTree(folder_).IgnoreError();
    files_->Remove(file_).IgnoreError();
  }

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
