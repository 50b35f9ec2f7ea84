#include "muster/store/work/work_tally.h"

#include <gmock/gmock.h>

namespace muster::work_tally_test {
namespace {

using ::testing::ElementsAre, ::testing::IsEmpty;

constexpr Stamp kStamp = {.client = 2, .incarnation = 9};

TEST(WorkTallyTest, RequestsAreNumberedAndSayHowFarTheWorkerIs) {
  WorkTally tally;
  EXPECT_EQ(tally.Ask().stamp, (Stamp{0, 0, 1})) << "a process that hasn't joined has no incarnation yet";
  tally.Joined(kStamp);
  tally.Taken(5);
  ASSERT_TRUE(tally.Begin());
  EXPECT_EQ(tally.Ask().over, 0U);
  tally.Over();
  const TakeWorkRequest request = tally.Ask();
  EXPECT_EQ(request.stamp, (Stamp{2, 9, 3}));
  EXPECT_EQ(request.after, 5U);
  EXPECT_EQ(request.over, 5U);
}

TEST(WorkTallyTest, APushBringsAllThatHasBegunSinceTheLastOne) {
  WorkTally tally;
  EXPECT_EQ(tally.Seal(), WorkRange());
  for (const uint64_t ticket : {5, 6, 8}) tally.Taken(ticket);
  EXPECT_EQ(tally.Seal(), WorkRange()) << "nothing is trained on yet";
  EXPECT_TRUE(tally.Begin());
  EXPECT_TRUE(tally.Begin());
  EXPECT_EQ(tally.Seal(), (WorkRange{5, 6}));
  EXPECT_TRUE(tally.Begin());
  EXPECT_EQ(tally.Seal(), (WorkRange{5, 6})) << "what begins while it is sent belongs to the next one";
  EXPECT_EQ(tally.counted(), 0U);
  tally.Counted();
  EXPECT_EQ(tally.counted(), 6U);
  EXPECT_EQ(tally.Seal(), (WorkRange{8, 8}));
  tally.Counted();
  EXPECT_EQ(tally.Seal(), WorkRange());
}

TEST(WorkTallyTest, WhatIsDroppedIsForOthers) {
  WorkTally tally;
  for (const uint64_t ticket : {5, 6}) tally.Taken(ticket);
  tally.Begin();
  EXPECT_EQ(tally.Seal(), (WorkRange{5, 5}));
  tally.Begin();
  tally.Dropped();
  EXPECT_THAT(tally.Abandoned(), ElementsAre(5));
  tally.Told(1);
  EXPECT_THAT(tally.Abandoned(), IsEmpty());
  EXPECT_EQ(tally.Seal(), (WorkRange{6, 6}));
  EXPECT_EQ(tally.counted(), 0U);
}

TEST(WorkTallyTest, WhoJoinsAgainHasLostWhatItHad) {
  WorkTally tally;
  tally.Taken(4);
  tally.Joined(kStamp);
  EXPECT_THAT(tally.Abandoned(), IsEmpty()) << "the first time it may have prefetched";
  tally.Taken(5);
  tally.Taken(6);
  tally.Begin();
  tally.Seal();
  tally.Joined(kStamp);
  EXPECT_THAT(tally.Abandoned(), ElementsAre(4, 5, 6));
  EXPECT_EQ(tally.Seal(), WorkRange());
  tally.Taken(9);
  EXPECT_FALSE(tally.Begin()) << "5";
  EXPECT_FALSE(tally.Begin()) << "6";
  EXPECT_TRUE(tally.Begin());
  EXPECT_EQ(tally.Seal(), (WorkRange{9, 9}));
}

TEST(WorkTallyTest, WhoHasNothingReadyAndNothingUnderWayIsIdle) {
  WorkTally tally;
  tally.Joined(kStamp);
  EXPECT_TRUE(tally.Idle());
  tally.Taken(5);
  EXPECT_FALSE(tally.Idle());
  tally.Begin();
  EXPECT_FALSE(tally.Idle()) << "its step is under way";
  tally.Over();
  EXPECT_TRUE(tally.Idle()) << "the update may wait in a window";
  tally.Taken(6);
  tally.Taken(7);
  tally.Begin();
  tally.Joined(kStamp);
  EXPECT_FALSE(tally.Idle()) << "7 is still to be skipped";
  EXPECT_FALSE(tally.Begin());
  EXPECT_TRUE(tally.Idle()) << "what was under way is lost";
}

TEST(WorkTallyTest, WhoTakesNothingLosesNothing) {
  WorkTally tally;
  EXPECT_TRUE(tally.Begin());
  EXPECT_EQ(tally.Seal(), WorkRange());
  tally.Counted();
  EXPECT_EQ(tally.counted(), 0U);
}

}  // namespace
}  // namespace muster::work_tally_test
