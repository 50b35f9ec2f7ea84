// Ids of experiments, runs and tasks as users see and type them: "4", "4.3" (a run of a grid), "4.build", "4.master",
// "4.worker.2", "4.3.ps.1". Tasks count from 1 here and from 0 in TF_CONFIG. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "muster/cluster/task_id.h"

namespace muster {

// The job of the task that runs `install`; one per experiment.
inline constexpr char kBuildJob[] = "build";

struct ExperimentId {
  int64_t number = 0;  // from 1
  int run = 0;         // of a grid, from 1; 0: the experiment itself

  // Returns "4" or "4.3".
  std::string ToString() const;
  // Returns InvalidArgument saying what is accepted.
  static absl::StatusOr<ExperimentId> Parse(std::string_view text);

  bool operator==(const ExperimentId&) const = default;
  auto operator<=>(const ExperimentId&) const = default;
};

// Returns "master", "build", "evaluator" (jobs with one task) or "worker.2".
std::string LabelOf(const TaskId& task);
// Returns "4.3.worker.2".
std::string FullName(const ExperimentId& id, const TaskId& task);

// What a user names: an experiment, a run or a task.
struct ExperimentName {
  ExperimentId id;
  std::optional<TaskId> task;

  // Parses either form, an experiment's or a task's. InvalidArgument with an example of each.
  static absl::StatusOr<ExperimentName> Parse(std::string_view text);
};

}  // namespace muster
