// Formats what `muster monitor` shows of an experiment's tasks, as lines of a table and as JSON. Pure, thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/launch/registry/run_state.h"
#include "muster/launch/watch/progress.h"
#include "muster/launch/watch/usage.h"

namespace muster {

struct UsageRow {
  std::string name;  // "4.worker.1"
  std::string project;
  RunState state = RunState::kCreated;
  std::optional<TaskUsage> usage;  // while it runs
  TaskProgress progress;
};

// What a table that is drawn again and again looked like the last time, so that its headings stay: a column that came
// stays, and one that was left out or shortened stays so, until the width changes.
struct UsageShape {
  size_t columns = 0;
  size_t narrowed = 0;  // how many of the ways to make it narrower were taken
  bool with_progress = false;
  bool with_gpus = false;
};

// Returns the headings, then one line per row. GPU columns say N/A without a GPU; unknown values are "-". The columns
// of training progress appear if any row has some. A table that is wider than `columns` has shorter headings and fewer
// columns: first goes what is the same in all rows (the project, GPUs that nobody has), then what another column says
// more exactly. `shape`, unless null, is followed and brought up to date.
std::vector<std::string> UsageTable(const std::vector<UsageRow>& rows, size_t columns, UsageShape* shape = nullptr);

// Returns one line: {"time": …, "tasks": [{"id", "project", "state", "cpu_percent", …}]}, with null for unknown values
// and memory in bytes.
std::string UsageJson(const std::vector<UsageRow>& rows, absl::Time now);

}  // namespace muster
