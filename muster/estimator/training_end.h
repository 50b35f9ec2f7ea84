// Tells a process that sees only a model_dir that training into it has ended: the file training_ended.json, which the
// chief writes when its training has ended without an error, for whatever reason, and removes when it trains again. By
// it an evaluator ends if max_steps was never reached. docs/train_and_evaluate.md lists its keys. Stateless functions,
// as thread-safe as the FileSystem.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/base/files/file_system.h"
#include "muster/estimator/estimator.h"

namespace muster {

inline constexpr char kTrainingEndFile[] = "training_ended.json";

struct TrainingEnd {
  std::optional<int64_t> global_step;  // of the last checkpoint; unset: there is none
  std::optional<int64_t> max_steps;    // the goal of the training
  std::string why;                     // for people
  double wall_time = 0;                // seconds since 1970: tells one end from another

  bool operator==(const TrainingEnd&) const = default;
};

// Atomic. Errors: the file system's.
[[nodiscard]] absl::Status WriteTrainingEnd(FileSystem& files, const std::string& model_dir, const TrainingEnd& end);
// Returns nothing if there is no such file. DataLoss names the file and what is wrong in it.
absl::StatusOr<std::optional<TrainingEnd>> ReadTrainingEnd(FileSystem& files, const std::string& model_dir);
// It is no error if there is no such file.
[[nodiscard]] absl::Status RemoveTrainingEnd(FileSystem& files, const std::string& model_dir);

// Calls Estimator::Train. On the chief, removes the file before, and writes it afterwards unless Train throws. Throws
// Error.
void TrainToItsEnd(Estimator& estimator, const InputFn& input_fn, const TrainOptions& options);

// Returns the 100 of "dir/model.ckpt-100"; -1 for a path that isn't a checkpoint's.
int64_t StepOfCheckpointPath(const std::string& path);

}  // namespace muster
