#include "muster/transport/io/busy_wait.h"

#include <gtest/gtest.h>

namespace muster::busy_wait_test {
namespace {

constexpr int64_t kMicrosecond = 1000;

// Makes waits that sleep for `length` until a busy one is allowed, at most `most`; returns how many.
int SleepsBeforeBusy(BusyWait& wait, int64_t length, int most) {
  int64_t now = 0;
  for (int sleeps = 0; sleeps < most; ++sleeps) {
    if (wait.Begin(now, 0)) return sleeps;
    now += length;
    wait.EndAsleep(now);
  }
  return most;
}

// Polls every microsecond as long as it may, and loses its core at `preempted`; returns the time spent polling.
int64_t BusyFor(BusyWait& wait, int64_t preempted) {
  int64_t now = 0;
  wait.Begin(now, 0);
  do now += kMicrosecond;
  while (wait.GoesOn(now, now < preempted ? 0 : 1));
  return now;
}

TEST(BusyWait, FollowsShortWaitsOnly) {
  BusyWait wait;
  EXPECT_EQ(SleepsBeforeBusy(wait, 2 * BusyWait::kLongest, 100), 100);
  EXPECT_EQ(SleepsBeforeBusy(wait, 50 * kMicrosecond, 100), BusyWait::kFewestShortWaits);
}

TEST(BusyWait, IsBounded) {
  BusyWait wait;
  SleepsBeforeBusy(wait, 50 * kMicrosecond, 100);
  EXPECT_EQ(BusyFor(wait, 2 * BusyWait::kLongest), BusyWait::kLongest);
  EXPECT_FALSE(wait.Begin(0, 0));
}

TEST(BusyWait, GivesTheCoreToWhoWantsIt) {
  BusyWait wait;
  SleepsBeforeBusy(wait, 50 * kMicrosecond, 100);
  EXPECT_EQ(BusyFor(wait, 10 * kMicrosecond), 10 * kMicrosecond);
}

TEST(BusyWait, EachFailureDemandsTwiceAsManyShortWaitsUntilOneSucceeds) {
  BusyWait wait;
  for (int needed = BusyWait::kFewestShortWaits; needed < BusyWait::kMostShortWaits; needed *= 2) {
    EXPECT_EQ(SleepsBeforeBusy(wait, kMicrosecond, 10000), needed);
    BusyFor(wait, 0);
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(SleepsBeforeBusy(wait, kMicrosecond, 10000), BusyWait::kMostShortWaits);
    BusyFor(wait, 0);
  }
  SleepsBeforeBusy(wait, kMicrosecond, 10000);
  wait.Begin(0, 0);
  wait.EndAwake();
  BusyFor(wait, 0);
  EXPECT_EQ(SleepsBeforeBusy(wait, kMicrosecond, 10000), 2 * BusyWait::kFewestShortWaits);
}

}  // namespace
}  // namespace muster::busy_wait_test
