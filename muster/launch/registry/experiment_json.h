// The JSON of an experiment's files: experiment.json, records and state.json (docs/experiments/state.md). Stateless,
// thread-safe. Reading returns DataLoss for what this program doesn't write, FailedPrecondition for a newer format.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/launch/registry/registry.h"

namespace muster {

// An attempt that was asked for, of the experiment (run 0) or of a run of its grid.
struct AskedRun {
  int run = 0;
  int attempt = 1;
  absl::Time created;
  std::string tree;
  ParameterValues parameters;
  std::string output_dir;
  std::string machine;  // that asked for it
};

struct ExperimentFileText {
  int64_t number = 0;
  NewExperiment experiment;  // without `runs`
  std::vector<AskedRun> runs;
};
std::string ExperimentText(const ExperimentFileText& file);
absl::StatusOr<ExperimentFileText> ParseExperimentText(std::string_view text);

// What a record holds: a run with the GPUs leased to it, and those of its tasks that have changed.
struct RunChange {
  RunRecord run;  // attempt, state, reason, output_dir, exit_code, supervisor, machine, run_id, ended
  std::vector<int> gpus;
  std::vector<TaskRecord> tasks;
};
std::string RecordText(const RunChange& change);
absl::StatusOr<RunChange> ParseRecordText(std::string_view text);

// Returns the text of state.json.
std::string StateText(const RunChange& state, absl::Time renewed);

}  // namespace muster
