// Runs whose job shares no folder with the host that has submitted it (docs/far_homes.md): which they are, and that
// somebody sees to them. Functions block for seconds; stateless.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/base/clock.h"
#include "muster/launch/engines/job_engine.h"
#include "muster/launch/experiment/detach.h"
#include "muster/launch/far_home/far_mirror.h"
#include "muster/launch/registry/files/job_file.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/registry/registry.h"

namespace muster {

// Whether jobs of this engine see no folder of those who submit them.
bool HasFarHomes(JobEngine& engine);

// A run is far from MarkFar on until all has been fetched and its job is gone. `job`: the one that is about to be
// submitted, as far as it is known. Errors are those of ReplaceFile.
[[nodiscard]] absl::Status MarkFar(const Home& home, const ExperimentId& id, const JobOfRun& job = {});
// Returns what MarkFar was told, if that names a job. It may never have been made, or was made by a process that was
// killed before it could write the file `job`.
std::optional<JobOfRun> JobMarkedFar(const Home& home, const ExperimentId& id);
void UnmarkFar(const Home& home, const ExperimentId& id);
bool IsFar(const Home& home, const ExperimentId& id);
std::vector<ExperimentId> FarRuns(const Home& home);
// Returns whether a run has ended without its job's file, so that nobody knows whether that job was made: its engine
// didn't answer, or its command was killed. A collector ends the job once the engine answers.
bool MayHaveUnwrittenJob(const Home& home, const RunRecord& run);
// Returns what users read of a run that has ended while its output isn't all here, or its job may be there; "" of
// others.
std::string FetchingText(const Home& home, const RunRecord& run);

// Whether this job has got the experiment from here; true of a job that shares the folder.
bool HasComeInto(const Home& home, const ExperimentId& id, const std::string& job);
[[nodiscard]] absl::Status NoteSent(const Home& home, const ExperimentId& id, const std::string& job);

// Says that somebody looks at the run, so that its collector fetches every second for a while.
void WantFar(const Home& home, const ExperimentId& id);
// Returns whether that was said within the last 10 s, or something is asked of the supervisor.
bool IsFarWanted(const Home& home, const ExperimentId& id);
// Returns whether a command looks now. A request may be there longer than the command that has made it.
bool IsFarLookedAt(const Home& home, const ExperimentId& id);

// Returns how the run's files are to be fetched, as far as its specification says.
FarMirror::Options FarOptionsOf(Registry& registry, const ExperimentId& id);

// Fetches what is new of a run in this job, if nobody has just done so. Errors are those of FarMirror.
absl::StatusOr<FarNews> RefreshFar(const Home& home, Registry& registry, JobEngine& engine, const Clock& clock,
                                   const ExperimentId& id, const JobOfRun& job);

// As Registry::EndLost, for any run in a job: what is fetched of a far run isn't written meanwhile.
[[nodiscard]] absl::Status EndLostInJob(const Home& home, Registry& registry, const ExperimentId& id,
                                        const LostEnd& end);

// Writes that the run has no job any more, and lets it begin once more in another one: nothing more is fetched from the
// one that it had. For whoever holds the run's lock.
[[nodiscard]] absl::Status LeaveJob(const Home& home, Registry& registry, const ExperimentId& id, const JobOfRun& job);

// Starts a collector for each far run that has none. What can't be started now is tried by the next command.
void StartCollectors(const Home& home, const SupervisorStart& start);

}  // namespace muster
