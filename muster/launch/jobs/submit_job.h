// Submits the runs of an experiment as jobs of an engine (docs/slurm_jobs.md). Not thread-safe.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/launch/engines/job_engine.h"
#include "muster/launch/experiment/detach.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/registry/registry.h"
#include "muster/launch/spec/experiment_file.h"

namespace muster {

struct JobsOrder {
  Home home;
  std::string muster;  // this program, as the nodes see it
  mode_t users_umask = 022;
  ExperimentFile file;
  NewExperiment experiment;
  // How collectors are started, each before its job is made; nullopt: none is.
  std::optional<SupervisorStart> collectors = std::nullopt;
};

// InvalidArgument names a path that can't be in the script of the setting's engine, as it isn't text (UTF-8):
// MUSTER_HOME, the project's folder, this program. Slurm's script has any path, as has an experiment that is in no job.
[[nodiscard]] absl::Status CheckPathsOfJob(const HostSetting& setting, const std::string& home,
                                           const std::string& folder, const std::string& muster);

// Returns the script of a run's job. `after`: the jobs after whose ends it may begin, "17:19", or "". `ending_seconds`:
// as JobOfRun has it. InvalidArgument: as NeedsOfHosts and CheckPathsOfJob.
absl::StatusOr<std::string> ScriptOfJob(const JobEngine& engine, const JobsOrder& order, const ExperimentId& id,
                                        const std::string& after, double ending_seconds);

// Writes that script into the run's folder, which must exist. Errors are those of ScriptOfJob and ReplaceFile.
[[nodiscard]] absl::Status WriteJobScript(const JobEngine& engine, const JobsOrder& order, const ExperimentId& id,
                                          const std::string& after, double ending_seconds);

struct ChainPlace {
  int chain = 0;
  std::string after = "";  // the jobs before it, "17:19"
  int turn = 0;            // so many runs of its grid have jobs at a time, and it has none yet; 0: it gets one
};

// Writes the run's script and submits it; the file `job` says which job it is. `ending_seconds`: of an attempt before.
// If there is no room for it, and it may be submitted again, the file says so (HasNoJob), and its collector does that.
// Errors are those of JobEngine::Submit, and of writing to the run's folder.
absl::StatusOr<std::string> SubmitRun(JobEngine& engine, const JobsOrder& order, const ExperimentId& id,
                                      const ChainPlace& place, double ending_seconds);

// Submits all open runs of a grid, each as a job of its own. They form as many chains as the file's `concurrency` says:
// a job waits for the end of those before it in its chain, so that never more run at once, whether any process of
// muster lives or not. Where jobs can't wait for others (JobTerms::chains), the runs after the first ones have none
// until their collectors find that it is their turn. A run that the engine refuses is FAILED with its words. Returns
// how many were submitted. Calls `progress` after each.
absl::StatusOr<int> SubmitGrid(JobEngine& engine, Registry& registry, const JobsOrder& order, const ExperimentId& grid,
                               const std::function<void(int done)>& progress);

// After the end of a run after which none is left in its chain: frees the last run that still waits in another one.
void FreeNextOfGrid(JobEngine& engine, const Home& home, Registry& registry, const ExperimentId& ended);

// Writes the end of a grid whose runs have all ended. A run's supervisor does that, or a command that finds it.
[[nodiscard]] absl::Status EndGridIfOver(const Home& home, Registry& registry, int64_t number);

}  // namespace muster
