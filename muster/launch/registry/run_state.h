// The states of a task, of a run and of an experiment, and which may follow which: docs/experiments.md, "States". Plain
// functions, thread-safe.
//
//   CREATED  -> BUILDING | PENDING
//   PENDING  -> BUILDING | STARTING   it waited: for another process's build, for GPUs, for its turn in a grid
//   BUILDING -> PENDING               `install` has run
//   STARTING -> RUNNING               its process runs; of a run: those of all its tasks do
//   RUNNING  -> STARTING              it is restarted
//   any of these -> FINISHED | FAILED | KILLED, after which only a new attempt (CREATED) may follow
#pragma once

#include <string_view>

#include "absl/status/statusor.h"

namespace muster {

enum class RunState { kCreated, kBuilding, kPending, kStarting, kRunning, kFinished, kFailed, kKilled };

// Returns "RUNNING".
std::string_view Name(RunState state);
// Returns InvalidArgument naming the accepted ones.
absl::StatusOr<RunState> ParseRunState(std::string_view name);
bool HasEnded(RunState state);
// Writers of the registry must obey this. A state doesn't follow itself.
bool MayFollow(RunState from, RunState to);

}  // namespace muster
