// The file `job` of a run whose supervisor is in a job of an engine, as one of Slurm: which job that is
// (docs/slurm_jobs.md). Written by the process that submits it and then by the supervisor. That somebody has asked for
// its end is a file of its own beside it, so that neither of them takes it back by what it has read before.
// Thread-safe.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

struct JobOfRun {
  std::string engine;          // "slurm"
  std::string id = "";         // as the engine names it; empty: a grid, whose runs have jobs of their own
  std::string at = "";         // where the engine is, as it says itself; empty: `host` knows
  std::string host = "";       // that has submitted it, whose engine surely knows it
  int chain = 0;               // of the grid's chains of jobs, the one in which it is
  int requeues = 0;            // how often the run has gone on in another job, or in this one begun anew
  int restarts = 0;            // how often the engine has begun this job anew, as far as its supervisor has seen
  bool wants_another = false;  // its supervisor has ended because its job's time was over: it goes on in another one
  bool doubtful = false;       // that, though it couldn't be asked whether somebody had cancelled the job
  bool killed = false;         // somebody has asked for its end
  std::string no_room = "";    // why it has no job now, but waits to be submitted again: none took all of it at once
  double again_at = 0;         // when that is, in seconds since 1970; 0: it has a job
  int tries = 0;               // how often it was submitted and not all of its hosts came
  int turn = 0;                // it waits, without a job, until fewer runs of its grid have jobs; 0: it doesn't
  double ending_seconds = 0;   // what its tasks have taken to end, when they were asked to last; 0: unknown

  bool operator==(const JobOfRun&) const = default;
};

// Returns nullopt if there is no such file: the run isn't in a job. `killed` is also true from NoteKilled on, whatever
// has been written since. DataLoss: muster hasn't written it.
absl::StatusOr<std::optional<JobOfRun>> ReadJobFile(const std::string& path);
// Errors are those of ReplaceFile.
[[nodiscard]] absl::Status WriteJobFile(const std::string& path, const JobOfRun& job);
// Notes for good that somebody has asked for the end of the run whose file `job` this is. Errors are those of
// ReplaceFile.
[[nodiscard]] absl::Status NoteKilled(const std::string& path);
// Removes both, before another attempt.
void RemoveJobFile(const std::string& path);

}  // namespace muster
