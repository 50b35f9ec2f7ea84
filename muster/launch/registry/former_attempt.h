// The attempt before the last Restart, which Registry::TakeRestartBack brings back: what had been asked for is kept in
// former.json, and how it ended is in the run's records. Internal to the registry. Stateless.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/launch/registry/experiment_json.h"
#include "muster/launch/registry/files/exclusive_file.h"
#include "muster/launch/registry/home.h"

namespace muster {

// Must be held while experiment.json gets other attempts: it has those of all runs of a grid, and several
// commands may restart some of them, each with an index of its own. Blocks for 35 s at most. Errors are those of
// ExclusiveFile::Take.
absl::StatusOr<ExclusiveFile> TakeAskedRuns(const Home& home, int64_t number);

// Copies experiment.json, before it gets other attempts. Errors are those of ReplaceFile.
[[nodiscard]] absl::Status KeepFormer(const Home& home, int64_t number);

struct FormerAttempt {
  ExperimentFileText file;  // of the experiment
  AskedRun asked;           // of the run
  RunChange end;            // the run's last row, with all its tasks
};
// Returns the attempt of the run before attempt `present`. FailedPrecondition: there was none. DataLoss: the files
// can't be read.
absl::StatusOr<FormerAttempt> ReadFormer(const Home& home, const ExperimentId& id, int present);

}  // namespace muster
