#include "muster/store/arena/round_bell.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <memory>
#include <thread>

namespace muster::round_bell_test {
namespace {

class RoundBellTest : public ::testing::Test {
 protected:
  bool IsSomebodyAsleep() { return std::atomic_ref(header_->rounds.sleeping).load() != 0; }

  const std::unique_ptr<ArenaHeader> header_ = std::make_unique<ArenaHeader>();
  RoundBell bell_{*header_};
};

TEST_F(RoundBellTest, WhatHasRungSinceIsNotWaitedFor) {
  const uint32_t before = bell_.rings();
  EXPECT_FALSE(bell_.Wait(before, absl::ZeroDuration()));
  bell_.Ring();
  EXPECT_TRUE(bell_.Wait(before, absl::ZeroDuration()));
  EXPECT_TRUE(bell_.Wait(before, absl::Hours(1)));
  EXPECT_FALSE(IsSomebodyAsleep()) << "a ring would make a system call for nobody";
}

TEST_F(RoundBellTest, AWaitEndsThoughNobodyRings) { EXPECT_FALSE(bell_.Wait(bell_.rings(), absl::Nanoseconds(1))); }

// Without the wake-up, each would sleep for an hour.
TEST_F(RoundBellTest, WhoSleepsIsWoken) {
  for (int i = 0; i < 20; ++i) {
    const uint32_t before = bell_.rings();
    std::thread sleeper([&] { EXPECT_TRUE(bell_.Wait(before, absl::Hours(1))); });
    while (!IsSomebodyAsleep()) sched_yield();
    bell_.Ring();
    sleeper.join();
    EXPECT_FALSE(IsSomebodyAsleep());
  }
}

}  // namespace
}  // namespace muster::round_bell_test
