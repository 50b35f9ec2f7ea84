#include "muster/launch/registry/run_state.h"

#include <array>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/absl_view.h"
#include "muster/cluster/quoted.h"

namespace muster {
namespace {

// In the order of RunState.
constexpr std::array<const char*, 8> kRunStateNames = {"CREATED", "BUILDING", "PENDING", "STARTING",
                                                       "RUNNING", "FINISHED", "FAILED",  "KILLED"};

}  // namespace

std::string_view Name(RunState state) { return kRunStateNames[static_cast<size_t>(state)]; }

absl::StatusOr<RunState> ParseRunState(std::string_view name) {
  for (size_t i = 0; i < kRunStateNames.size(); ++i) {
    if (name == kRunStateNames[i]) return static_cast<RunState>(i);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(Quoted(name), " is not a state; accepted: ", absl::StrJoin(kRunStateNames, ", ")));
}

bool HasEnded(RunState state) {
  return state == RunState::kFinished || state == RunState::kFailed || state == RunState::kKilled;
}

bool MayFollow(RunState from, RunState to) {
  if (HasEnded(from)) return to == RunState::kCreated;
  if (HasEnded(to)) return true;
  switch (from) {
    case RunState::kCreated:
      return to == RunState::kBuilding || to == RunState::kPending;
    case RunState::kPending:
      return to == RunState::kBuilding || to == RunState::kStarting;
    case RunState::kBuilding:
      return to == RunState::kPending;
    case RunState::kStarting:
      return to == RunState::kRunning;
    case RunState::kRunning:
      return to == RunState::kStarting;
    default:
      return false;
  }
}

}  // namespace muster
