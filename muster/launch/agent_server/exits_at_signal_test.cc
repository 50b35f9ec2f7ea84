#include "muster/launch/agent_server/exits_at_signal.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace muster::exits_at_signal_test {
namespace {

using ::testing::ElementsAre, ::testing::IsEmpty;

constexpr absl::Duration kSettle = ExitsAtSignal::kSettle;
const absl::Time kBegun = absl::UnixEpoch();

class ExitsAtSignalTest : public ::testing::Test {
 protected:
  void End(uint64_t launch, const ExitStatus& status, absl::Time begun = kBegun) {
    exits_.OnExit({.supervisor = 1, .number = launch}, status, begun);
  }
  std::vector<std::string> After(absl::Duration time) {
    clock_.Advance(time);
    std::vector<std::string> told;
    for (const ExitsAtSignal::Exit& exit : exits_.TakeDue())
      told.push_back(absl::StrCat(exit.launch.number, exit.at_signal ? " at the signal" : ""));
    return told;
  }

  SimulatedClock clock_;
  ExitsAtSignal exits_{kSettle, clock_};
};

TEST_F(ExitsAtSignalTest, WithoutASignalEveryEndIsToldAMomentLater) {
  End(1, {});
  EXPECT_EQ(exits_.deadline(), clock_.Now() + kSettle);
  EXPECT_THAT(After(kSettle - absl::Milliseconds(1)), IsEmpty());
  EXPECT_THAT(After(absl::Milliseconds(1)), ElementsAre("1"));
  EXPECT_EQ(exits_.deadline(), absl::InfiniteFuture());
}

// A ps may fail because everybody has gone.
TEST_F(ExitsAtSignalTest, NoEndOvertakesAnother) {
  End(1, {});
  EXPECT_THAT(After(kSettle / 2), IsEmpty());
  End(2, {.code = 3});
  EXPECT_THAT(After(kSettle / 2), ElementsAre("1"));
  EXPECT_THAT(After(kSettle / 2), ElementsAre("2"));
}

TEST_F(ExitsAtSignalTest, AnEndByAnExitCodeAfterTheSignalIsItsAnswer) {
  exits_.OnSignal();
  clock_.Advance(absl::Seconds(20));  // saved a checkpoint
  End(1, {});
  End(2, {.code = 1});
  End(3, {.signal = SIGTERM});
  End(4, {.signal = SIGKILL, .over_memory = 1 << 20});
  EXPECT_THAT(After(kSettle), ElementsAre("1 at the signal", "2 at the signal", "3", "4"));
}

TEST_F(ExitsAtSignalTest, TheTaskMayGetTheSignalFirst) {
  End(1, {});
  End(2, {.signal = SIGTERM});
  exits_.OnSignal();
  EXPECT_THAT(After(absl::ZeroDuration()), ElementsAre("1 at the signal", "2"));
}

TEST_F(ExitsAtSignalTest, WhatHasBegunSinceTheSignalEndsByItself) {
  exits_.OnSignal();
  clock_.Advance(absl::Seconds(1));
  End(1, {}, clock_.Now());
  EXPECT_THAT(After(kSettle), ElementsAre("1"));
}

TEST_F(ExitsAtSignalTest, WhoOutlivesTheSignalEndsByItself) {
  exits_.OnSignal();
  clock_.Advance(ExitsAtSignal::kAnswer + absl::Seconds(1));
  End(1, {});
  EXPECT_THAT(After(kSettle), ElementsAre("1"));
}

TEST_F(ExitsAtSignalTest, WhereNobodySignalsAllOfAJobNothingWaits) {
  ExitsAtSignal exits(absl::ZeroDuration(), clock_);
  exits.OnSignal();
  exits.OnExit({.supervisor = 1, .number = 1}, {}, kBegun);
  const std::vector<ExitsAtSignal::Exit> told = exits.TakeDue();
  ASSERT_EQ(told.size(), 1);
  EXPECT_FALSE(told[0].at_signal);
}

}  // namespace
}  // namespace muster::exits_at_signal_test
