// From a checked experiment to one that runs and is shown: what `muster train` and `muster rerun` do alike. The code is
// copied, the experiment is put into the registry under the lock that its supervisor goes on holding, and from then on
// this process only shows the logs. Blocking; used by one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/muster/experiment/experiment_command.h"

namespace CLI {
class App;
}

namespace muster {

// How a started experiment is shown.
struct ShowFlags {
  bool detach = false;  // not at all
  bool json = false;
  std::string metric;  // that a grid's results are sorted by; empty: as ResolveMetric chooses
};
void AddShowFlags(CLI::App& command, ShowFlags& flags);

struct Submission {
  NewExperiment experiment;  // its tree is stored already
  // Instead of a new experiment another attempt of this one, or of this run of a grid, which has ended.
  std::optional<ExperimentId> again;
  int concurrency = 1;  // of its file
};

// Copies the code of `folder` to home.trees(), saying so on stdout unless `quiet`: "Syncing project (5.7 MB, 6
// files)...done". Returns its hash.
absl::StatusOr<std::string> SyncProject(const std::string& folder, const Home& home, bool quiet);

// Starts it and shows its lines until it has ended or Ctrl-C says that this is enough; the experiment goes on then.
// Returns the exit code: 0 finished or left to itself; the chief's if it failed; 130 if it was killed.
absl::StatusOr<int> Submit(const OpenedHome& opened, const Submission& submission, const ShowFlags& flags);

}  // namespace muster
