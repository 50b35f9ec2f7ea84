#include "muster/collective/shm/shm_wait.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace muster::shm_wait_test {
namespace {

bool IsSomebodyAsleep(ShmCounter& counter) { return std::atomic_ref(counter.sleeping).load() != 0; }

TEST(ShmWaitTest, KeepsAProcessorOnlyIfThereIsOneForEachRank) {
  EXPECT_EQ(ShortWaitFor(4, /*processors=*/4), ShortWait::kSpin);
  EXPECT_EQ(ShortWaitFor(5, /*processors=*/4), ShortWait::kYield);
}

// An unbounded wait would hang here.
TEST(ShmWaitTest, ABriefWaitEndsThoughNobodyCounts) {
  ShmCounter counter;
  EXPECT_FALSE(AwaitBriefly(counter, 1, ShortWait::kSpin));
  EXPECT_FALSE(AwaitBriefly(counter, 1, ShortWait::kYield));
  EXPECT_FALSE(IsSomebodyAsleep(counter)) << "whoever counts would wake nobody";
}

TEST(ShmWaitTest, WhatHasBeenCountedIsNotWaitedFor) {
  ShmCounter counter;
  CountTo(counter, 3);
  for (const uint32_t chunks : {1U, 3U}) {
    EXPECT_TRUE(AwaitBriefly(counter, chunks, ShortWait::kSpin));
    EXPECT_TRUE(AwaitAsleep(counter, chunks, absl::Hours(1)));
  }
  EXPECT_FALSE(AwaitAsleep(counter, 4, absl::ZeroDuration()));
}

TEST(ShmWaitTest, CountersWrapAround) {
  ShmCounter counter{.chunks = 0xfffffffe};
  EXPECT_TRUE(HasCounted(counter, 0xfffffffe));
  EXPECT_FALSE(HasCounted(counter, 1));
  CountTo(counter, 1);
  EXPECT_TRUE(HasCounted(counter, 0xffffffff));
  EXPECT_TRUE(HasCounted(counter, 1));
  EXPECT_FALSE(HasCounted(counter, 2));
}

// Without the wake-up each of them sleeps for an hour.
TEST(ShmWaitTest, WhoSleepsIsWokenByTheCount) {
  ShmCounter counter;
  for (uint32_t chunks = 1; chunks <= 20; ++chunks) {
    std::thread sleeper([&] { EXPECT_TRUE(AwaitAsleep(counter, chunks, absl::Hours(1))); });
    while (!IsSomebodyAsleep(counter)) sched_yield();
    CountTo(counter, chunks);
    sleeper.join();
    EXPECT_FALSE(IsSomebodyAsleep(counter));
  }
}

}  // namespace
}  // namespace muster::shm_wait_test
