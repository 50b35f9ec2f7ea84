// The states of a task, of a run and of an experiment, and which may follow which: docs/experiments.md draws it. Plain
// functions, thread-safe.
//
//   CREATED -> BUILDING | PENDING      BUILDING: the build task, while it installs; PENDING: waits for the build, for
//   GPUs, PENDING -> STARTING                or for its turn in a grid STARTING -> RUNNING                its process
//   is there RUNNING -> STARTING                it is started again any of these -> FINISHED | FAILED | KILLED, after
//   which there is nothing but a new attempt (CREATED)
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster {

enum class RunState { kCreated, kBuilding, kPending, kStarting, kRunning, kFinished, kFailed, kKilled };

// "RUNNING".
std::string_view Name(RunState state);
absl::StatusOr<RunState> ParseRunState(std::string_view name);
bool HasEnded(RunState state);
// What a writer of the registry must keep to.
bool MayFollow(RunState from, RunState to);

}  // namespace muster
