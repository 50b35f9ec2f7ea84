// The states of a task, of a run and of an experiment, and which may follow which: docs/experiments.md, "States". Plain
// functions, thread-safe.
//
//   CREATED  -> BUILDING | PENDING
//   PENDING  -> BUILDING | STARTING   it waited: for somebody else's build, for GPUs, for its turn in a grid
//   BUILDING -> PENDING               `install` has been run
//   STARTING -> RUNNING               its process is there; of a run: all its tasks' are
//   RUNNING  -> STARTING              it is started again
//   any of these -> FINISHED | FAILED | KILLED, after which there is nothing but a new attempt (CREATED)
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster {

enum class RunState { kCreated, kBuilding, kPending, kStarting, kRunning, kFinished, kFailed, kKilled };

// "RUNNING".
std::string_view Name(RunState state);
// InvalidArgument naming the accepted ones.
absl::StatusOr<RunState> ParseRunState(std::string_view name);
bool HasEnded(RunState state);
// What a writer of the registry must keep to. A state doesn't follow itself.
bool MayFollow(RunState from, RunState to);

}  // namespace muster
