// How somebody who sees nothing but a model_dir learns that nobody trains into it any more: the file
// training_ended.json, which the chief writes when its training has ended without an error, for whatever reason, and
// takes away when it trains again. An evaluator ends by it where max_steps was never reached.
// docs/train_and_evaluate.md has its keys. Stateless functions, as thread-safe as the FileSystem.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/files/file_system.h"
#include "muster/estimator/estimator.h"

namespace muster {

inline constexpr char kTrainingEndFile[] = "training_ended.json";

struct TrainingEnd {
  std::optional<int64_t> global_step;  // of the last checkpoint; unset: there is none
  std::optional<int64_t> max_steps;    // that the training was to reach
  std::string why;                     // for people
  double wall_time = 0;                // seconds since 1970: one end differs from another by it

  bool operator==(const TrainingEnd&) const = default;
};

// Atomically. Errors: the file system's.
[[nodiscard]] absl::Status WriteTrainingEnd(FileSystem& files, const std::string& model_dir, const TrainingEnd& end);
// Nothing: there is no such file. DataLoss names the file and what is wrong in it.
absl::StatusOr<std::optional<TrainingEnd>> ReadTrainingEnd(FileSystem& files, const std::string& model_dir);
// No such file is fine.
[[nodiscard]] absl::Status RemoveTrainingEnd(FileSystem& files, const std::string& model_dir);

// Estimator::Train, with the file taken away before and, if it doesn't throw, written behind it, where this process is
// the chief. Throws Error.
void TrainToItsEnd(Estimator& estimator, const InputFn& input_fn, const TrainOptions& options);

// The 100 of "dir/model.ckpt-100"; -1 for a path that isn't a checkpoint's.
int64_t StepOfCheckpointPath(const std::string& path);

}  // namespace muster
