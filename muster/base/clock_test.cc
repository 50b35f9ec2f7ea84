#include "muster/base/clock.h"

#include <gtest/gtest.h>

#include "absl/time/clock.h"

namespace muster::clock_test {
namespace {

TEST(RealClockTest, StartsAtTheWallTimeAndNeverRunsBackwards) {
  for (const Clock* clock : {&RealClock(), &BootClock()}) {
    const absl::Time before = absl::Now();
    const absl::Time first = clock->Now();
    EXPECT_GE(first, before - absl::Hours(1));
    absl::Time last = first;
    for (int i = 0; i < 1000; ++i) {
      const absl::Time now = clock->Now();
      ASSERT_GE(now, last);
      last = now;
    }
  }
}

TEST(SimulatedClockTest, StandsStillUntilMovedAndOnlyForwards) {
  SimulatedClock clock(absl::FromUnixSeconds(100));
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(100));
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(100));
  clock.Advance(absl::Seconds(5));
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(105));
  clock.AdvanceTo(absl::FromUnixSeconds(50));
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(105));
  clock.AdvanceTo(absl::FromUnixSeconds(200));
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(200));
}

}  // namespace
}  // namespace muster::clock_test
