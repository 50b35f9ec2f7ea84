// Who a process of the cluster is: its job and its number in that job. Written "worker:1" in messages and logs, and
// "/job:worker/task:1" in device strings. A plain value, no thread safety needed.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

namespace muster {

// The jobs that mean something. Other names are accepted in a cluster and carry no duties.
inline constexpr char kChiefJob[] = "chief";
inline constexpr char kMasterJob[] = "master";  // what TensorFlow called the chief before 1.4
inline constexpr char kWorkerJob[] = "worker";
inline constexpr char kPsJob[] = "ps";
inline constexpr char kEvaluatorJob[] = "evaluator";

// Indices above are refused: they are typing errors, and sums of them must fit an int.
inline constexpr int kMaxTaskIndex = 999'999;

struct TaskId {
  std::string job;
  int index = 0;

  // "worker:1".
  std::string ToString() const;
  // "/job:worker/task:1".
  std::string ToDevice() const;
  // Either form. InvalidArgument naming the text and the accepted forms.
  static absl::StatusOr<TaskId> Parse(std::string_view text);

  bool operator==(const TaskId&) const = default;
  // By name of the job, then by number.
  auto operator<=>(const TaskId&) const = default;

  template <typename H>
  friend H AbslHashValue(H h, const TaskId& task) {
    return H::combine(std::move(h), task.job, task.index);
  }
};

// Digits only, 0 to kMaxTaskIndex. InvalidArgument naming the text and that range.
absl::StatusOr<int> ParseTaskIndex(std::string_view text);

// Letters, digits, '_', '-' and '.', beginning with a letter: what can stand in a device string and in a file name.
// InvalidArgument naming the text and that rule.
[[nodiscard]] absl::Status ValidateJobName(std::string_view job);

}  // namespace muster
