#include "muster/launch/registry/run_state.h"

#include <gmock/gmock.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace muster::run_state_test {
namespace {

using ::testing::HasSubstr;

const std::vector<RunState> kAll = {RunState::kCreated, RunState::kBuilding, RunState::kPending, RunState::kStarting,
                                    RunState::kRunning, RunState::kFinished, RunState::kFailed,  RunState::kKilled};

TEST(RunState, IsReadAsItIsWritten) {
  std::set<std::string> names;
  for (const RunState state : kAll) {
    const std::string name(Name(state));
    names.insert(name);
    const auto parsed = ParseRunState(name).value();
    EXPECT_EQ(parsed, state);
  }
  EXPECT_EQ(names.size(), kAll.size());
  EXPECT_EQ(Name(RunState::kRunning), "RUNNING");
  for (const char* wrong : {"", "running", "RUNNING ", "DONE"}) {
    const auto parsed = ParseRunState(wrong);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << wrong;
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("accepted: CREATED, BUILDING, PENDING"));
  }
}

TEST(RunState, FollowsTheDrawing) {
  const std::set<std::pair<RunState, RunState>> drawn = {
      {RunState::kCreated, RunState::kBuilding}, {RunState::kCreated, RunState::kPending},
      {RunState::kPending, RunState::kBuilding}, {RunState::kPending, RunState::kStarting},
      {RunState::kBuilding, RunState::kPending}, {RunState::kStarting, RunState::kRunning},
      {RunState::kRunning, RunState::kStarting},
  };
  for (const RunState from : kAll) {
    for (const RunState to : kAll) {
      bool expected = drawn.count({from, to}) > 0;
      if (!HasEnded(from) && HasEnded(to)) expected = true;
      if (HasEnded(from) && to == RunState::kCreated) expected = true;
      EXPECT_EQ(MayFollow(from, to), expected) << Name(from) << " -> " << Name(to);
    }
  }
}

TEST(RunState, ThreeOfThemAreEnds) {
  std::set<RunState> ends;
  for (const RunState state : kAll) {
    if (HasEnded(state)) ends.insert(state);
  }
  EXPECT_EQ(ends, (std::set<RunState>{RunState::kFinished, RunState::kFailed, RunState::kKilled}));
}

}  // namespace
}  // namespace muster::run_state_test
