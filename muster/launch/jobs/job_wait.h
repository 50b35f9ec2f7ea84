// A run whose job found no room: it has no job then, waits for a while, and is submitted once more, as a job of another
// name (docs/kubernetes_engine.md). The file `job` says why and until when. Pure but for the random pause
// and where a home is read; thread-safe.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "muster/launch/engines/job_engine.h"
#include "muster/launch/registry/files/job_file.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/registry/registry.h"

namespace muster {

// Returns how long a run waits that was submitted `tries` times: twice as long each time, at most 5 minutes, or `first`
// if that is more. `chance`, from 0 to 1: up to a quarter less or more, so that two that have taken each other's room
// don't come back together.
absl::Duration PauseBeforeTry(int tries, absl::Duration first, double chance);

// Notes that it has no job for `why`, although it was submitted once more, and when it is submitted again.
void NoteNoRoom(JobOfRun& job, const std::string& why, const JobTerms& terms, absl::Time now);
// Notes that it has no job while `at_a_time` runs of its grid have one, where the engine lets no job wait for others.
void NoteTurn(JobOfRun& job, int at_a_time);
// Puts the next try off: the engine can't be asked now.
void PutOff(JobOfRun& job, const JobTerms& terms, absl::Time now);
inline bool HasNoJob(const JobOfRun& job) { return job.again_at > 0; }
// Whether that holds of this run, or of one of a grid's, as their files `job` say.
bool WaitsForSubmission(const Home& home, const RunRecord& run);
// Whether it may be submitted once more, as far as the setting says.
bool MayTryAgain(const JobOfRun& job, const JobTerms& terms);
bool IsDue(const JobOfRun& job, absl::Time now);

// "the namespace's quota has no room for all pods: …; tried 2 times"
std::string WhyNoJob(const JobOfRun& job);
// Returns when it is submitted again: "again in 40 s", "once one of them has ended".
std::string WhenAgain(const JobOfRun& job, absl::Time now);

}  // namespace muster
