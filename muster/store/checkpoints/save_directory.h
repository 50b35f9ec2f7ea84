// Where a ps may write checkpoints: only in one directory, whatever a request says. It is the model_dir that the ps was
// started with, or, if it was started without one, the first in which a chief has announced a save. So a process that
// can talk to the ps, but isn't its user, can't have it write elsewhere on the disk. Blocks on the disk, so it belongs
// to the thread that writes; not thread-safe.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "muster/base/files/file_system.h"

namespace muster {

class SaveDirectory {
 public:
  // `files` must outlive it. `model_dir` may be empty.
  SaveDirectory(FileSystem& files, std::string model_dir) : files_(files), directory_(std::move(model_dir)) {}

  // Returns where to write for the save `save_id` that a chief makes in `directory`: the chief has announced it there
  // (AnnounceSave). NotFound: the directory isn't visible from here, or another one.
  absl::StatusOr<std::string> For(const std::string& directory, const std::string& save_id);

 private:
  FileSystem& files_;
  std::string directory_;  // empty until a chief has announced a save
  bool said_ = false;      // that the chief saves elsewhere
};

}  // namespace muster
