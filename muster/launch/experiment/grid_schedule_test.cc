#include "muster/launch/experiment/grid_schedule.h"

#include <gmock/gmock.h>

#include <vector>

namespace muster::grid_schedule_test {
namespace {

using ::testing::ElementsAre, ::testing::IsEmpty;

class GridScheduleTest : public testing::Test {
 protected:
  GridSchedule Make(const std::vector<int>& runs, int concurrency) {
    return {runs, /*finished=*/0, concurrency, [this](int run) {
              started_.push_back(run);
              return run == broken_ ? becomes_ : RunState::kRunning;
            }};
  }

  std::vector<int> started_;
  int broken_ = 0;  // this run can't be started
  RunState becomes_ = RunState::kFailed;
};

TEST_F(GridScheduleTest, SoManyAtATimeInTheirOrder) {
  GridSchedule schedule = Make({1, 2, 3, 5}, 2);
  schedule.Fill();
  EXPECT_THAT(started_, ElementsAre(1, 2));
  schedule.Fill();
  EXPECT_THAT(started_, ElementsAre(1, 2)) << "nobody has ended";
  schedule.OnEnd(2, RunState::kFinished);
  schedule.Fill();
  EXPECT_THAT(started_, ElementsAre(1, 2, 3));
  EXPECT_THAT(schedule.running(), ElementsAre(1, 3));
  schedule.OnEnd(1, RunState::kFinished);
  schedule.OnEnd(3, RunState::kFinished);
  schedule.Fill();
  EXPECT_THAT(started_, ElementsAre(1, 2, 3, 5));
  EXPECT_FALSE(schedule.done());
  schedule.OnEnd(5, RunState::kFinished);
  EXPECT_TRUE(schedule.done());
  EXPECT_EQ(schedule.state(), RunState::kFinished);
  EXPECT_EQ(schedule.reason(), "");
}

TEST_F(GridScheduleTest, AFailedRunStopsNobody) {
  GridSchedule schedule = Make({1, 2, 3}, 1);
  schedule.Fill();
  schedule.OnEnd(1, RunState::kFailed);
  schedule.Fill();
  schedule.OnEnd(2, RunState::kFinished);
  schedule.Fill();
  schedule.OnEnd(3, RunState::kKilled);
  EXPECT_TRUE(schedule.done());
  EXPECT_EQ(schedule.state(), RunState::kFailed);
  EXPECT_EQ(schedule.reason(), "1 of 3 runs failed, 1 of 3 was killed");
}

TEST_F(GridScheduleTest, ARunThatCannotBeStartedLeavesItsPlaceToTheNext) {
  broken_ = 1;
  GridSchedule schedule = Make({1, 2}, 1);
  schedule.Fill();
  EXPECT_THAT(started_, ElementsAre(1, 2));
  EXPECT_THAT(schedule.running(), ElementsAre(2));
  schedule.OnEnd(2, RunState::kFinished);
  EXPECT_TRUE(schedule.done());
  EXPECT_EQ(schedule.state(), RunState::kFailed);
  EXPECT_EQ(schedule.reason(), "1 of 2 runs failed");
}

TEST_F(GridScheduleTest, ARunThatWasKilledBeforeItsTurnIsPassedOver) {
  broken_ = 2;
  becomes_ = RunState::kKilled;
  GridSchedule schedule = Make({1, 2, 3}, 1);
  schedule.Fill();
  schedule.OnEnd(1, RunState::kFinished);
  schedule.Fill();
  EXPECT_THAT(schedule.running(), ElementsAre(3));
  schedule.OnEnd(3, RunState::kFinished);
  EXPECT_EQ(schedule.reason(), "1 of 3 was killed");
}

TEST_F(GridScheduleTest, StoppedItStartsNoneAnyMore) {
  GridSchedule schedule = Make({1, 2, 3, 4}, 2);
  schedule.Fill();
  schedule.OnEnd(1, RunState::kFinished);
  EXPECT_THAT(schedule.Stop(), ElementsAre(3, 4));
  EXPECT_THAT(schedule.Stop(), IsEmpty());
  schedule.Fill();
  EXPECT_THAT(started_, ElementsAre(1, 2));
  EXPECT_FALSE(schedule.done()) << "2 runs still";
  schedule.OnEnd(2, RunState::kKilled);
  EXPECT_TRUE(schedule.done());
  EXPECT_EQ(schedule.state(), RunState::kKilled);
  EXPECT_EQ(schedule.reason(), "3 of 4 were killed");
}

// The disk is full: the run waits, and so do those after it.
TEST_F(GridScheduleTest, ARunThatCannotBeStartedNowIsTriedAgain) {
  broken_ = 2;
  becomes_ = RunState::kPending;
  GridSchedule schedule = Make({1, 2, 3}, 2);
  schedule.Fill();
  schedule.Fill();
  EXPECT_THAT(started_, ElementsAre(1, 2, 2));
  schedule.OnEnd(1, RunState::kFinished);
  EXPECT_FALSE(schedule.done());
  broken_ = 0;
  schedule.Fill();
  EXPECT_THAT(started_, ElementsAre(1, 2, 2, 2, 3));
  schedule.OnEnd(2, RunState::kFinished);
  schedule.OnEnd(3, RunState::kFinished);
  EXPECT_EQ(schedule.state(), RunState::kFinished);
}

TEST_F(GridScheduleTest, ARunThatWaitsForAnotherTryCanBeStopped) {
  broken_ = 1;
  becomes_ = RunState::kPending;
  GridSchedule schedule = Make({1, 2}, 1);
  schedule.Fill();
  EXPECT_THAT(schedule.Stop(), ElementsAre(1, 2));
  EXPECT_TRUE(schedule.done());
}

TEST_F(GridScheduleTest, WhatAnEarlierAttemptHasFinishedCounts) {
  GridSchedule schedule({4}, /*finished=*/8, 1, [](int) { return RunState::kRunning; });
  schedule.Fill();
  schedule.OnEnd(4, RunState::kFailed);
  EXPECT_EQ(schedule.reason(), "1 of 9 runs failed");
}

// The signal came when no run was left to kill.
TEST_F(GridScheduleTest, StoppedWhenAllHaveFinishedItIsFinished) {
  GridSchedule schedule = Make({1}, 2);
  schedule.Fill();
  schedule.Stop();
  schedule.OnEnd(1, RunState::kFinished);
  EXPECT_EQ(schedule.state(), RunState::kFinished);
}

TEST_F(GridScheduleTest, TheEndOfARunThatDoesNotRunIsNoEnd) {
  GridSchedule schedule = Make({1, 2}, 1);
  schedule.Fill();
  schedule.OnEnd(1, RunState::kFinished);
  schedule.OnEnd(1, RunState::kFinished);
  schedule.OnEnd(2, RunState::kFinished);
  EXPECT_NE(schedule.state(), RunState::kFinished);
}

}  // namespace
}  // namespace muster::grid_schedule_test
