// Starts a checked experiment and shows it: shared by `muster train` and `muster rerun`. Copies the code and puts the
// experiment into the registry, under the lock that its supervisor takes over. From then on this process only shows the
// logs. Blocking; used by one thread.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "apps/muster/experiment/experiment_command.h"

namespace CLI {
class App;
}

namespace muster {

inline constexpr int kExitOfKilled = 130;

// How a started experiment is shown.
struct ShowFlags {
  bool detach = false;  // don't show it
  bool json = false;
  std::string metric;  // sorts a grid's results; empty: chosen by ResolveMetric
};
void AddShowFlags(CLI::App& command, ShowFlags& flags);

struct Submission {
  NewExperiment experiment;  // its tree must be stored already
  // If set, starts another attempt of this ended experiment, or run of a grid, instead of a new experiment.
  std::optional<ExperimentId> again;
  int concurrency = 1;  // that of its file
};

// Copies the code of `folder` to home.trees(), and reports it on stdout unless `quiet`: "Syncing project (5.7 MB, 6
// files)...done". Returns its hash.
absl::StatusOr<std::string> SyncProject(const std::string& folder, const Home& home, bool quiet);

// Returns the path of this program.
std::string OwnProgram();

// Returns what becomes of a running experiment when this machine sleeps or is switched off; "" if its tasks run here.
// Parameters as below.
std::string SleepText(const std::string& host, const HostSetting& hosts, bool has_no_job);

enum class JobStage {
  kNone,  // it, or a run of it, waits to be submitted
  kSubmitted,
  kBegun,
};

// Returns the line about an experiment that goes on. `host`: the one that supervises it; empty: this machine. `hosts`:
// where its tasks run. `stage`: of its job, if these give it one.
std::string GoesOnText(const std::string& host, const std::string& id, const HostSetting& hosts, JobStage stage);

// Shows a started experiment's lines, from `since` on, as Submit does. Returns what Submit returns.
absl::StatusOr<int> FollowStarted(const OpenedHome& opened, const ExperimentId& id, absl::Time since,
                                  const ShowFlags& flags);

// Starts it and shows its lines until it has ended or Ctrl-C is pressed, after which the experiment keeps running.
// Returns the exit code: 0 finished or still running; the chief's if it failed; 130 if it was killed.
absl::StatusOr<int> Submit(OpenedHome& opened, const Submission& submission, const ShowFlags& flags);

}  // namespace muster
