// Functions that the commands about experiments share.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/clock.h"
#include "muster/launch/jobs/job_watch.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/registry/registry.h"

namespace muster {

// Processes of a run whose supervisor was killed together with the guard that would have ended them.
struct LeftProcesses {
  std::string run_id;
  std::vector<pid_t> pids;
};

struct OpenedHome {
  Home home;
  std::unique_ptr<Registry> registry;
  std::unique_ptr<JobWatch> jobs;              // with what it has found when the home was opened
  std::map<ExperimentId, LeftProcesses> left;  // by run
};

// Opens MUSTER_HOME (~/.muster) and its registry, after Registry::Reconcile. Reports on stderr what Reconcile found,
// which processes lost runs have left, and an error that keeps it from writing that down (a full disk): the commands
// can continue without that.
absl::StatusOr<OpenedHome> OpenHome();
// The same for commands that only read; works without write permission, as in another user's home.
absl::StatusOr<OpenedHome> OpenHomeToRead();

// Gives back the hosts that killed processes of this machine have held, and says so on stderr (GiveBackLeft).
void GiveBackLeftAloud(const Home& home);

// Calls Registry::Reconcile and reports what it found on stderr; a grid in one line, not each run that waited.
absl::StatusOr<std::vector<ExperimentId>> ReconcileAloud(Registry& registry);

// Asks engines about the jobs of experiments (JobWatch::Look), and reports what it has done on stderr.
void LookAtJobsAloud(JobWatch& jobs, int64_t number = 0);

// Ends what is left of an experiment's processes, for a grid of all its runs', and says so on stderr. Returns whether
// there was any.
bool EndLeftProcesses(OpenedHome& opened, const ExperimentId& id);
// Returns "; 2 processes of it still run: muster kill 4 ends them", or "" if none does; for a grid of all its runs.
std::string LeftText(const OpenedHome& opened, const ExperimentId& id);
// Returns "; muster train --experiment 4 goes on with it, from its last checkpoint" for an experiment that has lost its
// supervisor, otherwise "".
std::string GoOnText(Registry& registry, const RunRecord& run);

// Returns what the user means by `text`; if it is empty, the last experiment of the project in the working directory
// (or, without a file there, the last of all). NotFound.
absl::StatusOr<ExperimentName> NameOrLast(Registry& registry, const std::string& text);
// The same for a command that changes something: without a file in the working directory, an empty `text` is
// InvalidArgument.
absl::StatusOr<ExperimentName> NameOrLastHere(Registry& registry, const std::string& text);

// Checks an ID of the command line; returns what is wrong with it, or "". An empty one, as from an unset "$id", would
// otherwise mean the last experiment.
std::string RefuseEmptyId(const std::string& id);

// Returns the id as the person knows it who reads this: "4", or "gpu1:4" (terminal/shown_host.h).
std::string ShownId(const ExperimentId& id);

// Returns the exit code of a command that has ended with an error: 2 for the user's mistakes (InvalidArgument,
// NotFound, FailedPrecondition, IsWrongConfiguration), 1 otherwise.
int CommandExitCode(const absl::Status& error);
// Prints "muster COMMAND: message" and returns that exit code.
int ReportError(const std::string& command, const absl::Status& status);

// Returns the time as in logs and tables: "2026-01-31T07:23:46Z".
std::string ShownTime(absl::Time time);
// Returns "12 s", "4 min", "3 h", "2 d".
std::string ShownAge(absl::Duration age);

}  // namespace muster
