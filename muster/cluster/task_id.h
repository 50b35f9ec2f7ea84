// Identifies a process of the cluster by its job and its number in that job. Written "worker:1" in messages and logs,
// and "/job:worker/task:1" in device strings. A plain value, no thread safety needed.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

namespace muster {

// The jobs that have a meaning. A cluster may have jobs of other names; they have no duties.
inline constexpr char kChiefJob[] = "chief";
inline constexpr char kMasterJob[] = "master";  // TensorFlow's name for the chief before 1.4
inline constexpr char kWorkerJob[] = "worker";
inline constexpr char kPsJob[] = "ps";
inline constexpr char kEvaluatorJob[] = "evaluator";

// Higher indices are refused: they are typing errors, and sums of indices must fit an int.
inline constexpr int kMaxTaskIndex = 999'999;

struct TaskId {
  std::string job;
  int index = 0;

  // Returns "worker:1".
  std::string ToString() const;
  // Returns "/job:worker/task:1".
  std::string ToDevice() const;
  // Accepts either form. InvalidArgument names the text and the accepted forms.
  static absl::StatusOr<TaskId> Parse(std::string_view text);

  bool operator==(const TaskId&) const = default;
  // Orders by the job's name, then by number.
  auto operator<=>(const TaskId&) const = default;

  template <typename H>
  friend H AbslHashValue(H h, const TaskId& task) {
    return H::combine(std::move(h), task.job, task.index);
  }
};

// Accepts digits only, 0 to kMaxTaskIndex. InvalidArgument names the text and that range.
absl::StatusOr<int> ParseTaskIndex(std::string_view text);

// Accepts letters, digits, '_', '-' and '.', beginning with a letter: names that can stand in a device string and in a
// file name. InvalidArgument names the text and that rule.
[[nodiscard]] absl::Status ValidateJobName(std::string_view job);

}  // namespace muster
