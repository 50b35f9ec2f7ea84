#include "muster/base/wait_clock.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "muster/base/turn_lock.h"

namespace muster::wait_clock_test {
namespace {

TEST(WaitClockTest, WaitsByTheSimulatedClockUntilTheDeadlineOnly) {
  SimulatedWaitClock clock;
  const absl::Time begin = clock.Now();
  Mutex mutex;
  CondVar changed;
  absl::Time woken;
  std::thread waiter([&] {
    const MutexLock lock(mutex);
    while (clock.Now() < begin + absl::Seconds(10)) clock.WaitUntil(changed, mutex, begin + absl::Seconds(10));
    woken = clock.Now();
  });
  clock.AwaitWaiters(1);
  clock.Advance(absl::Seconds(9));
  clock.AwaitWaiters(1);
  clock.Advance(absl::Seconds(1));
  waiter.join();
  EXPECT_EQ(woken, begin + absl::Seconds(10));
}

// As threads of one coordinator do. The thread with the longer wait is woken by each move, too, and waits again:
// AwaitWaiters must not count it in place of one that hasn't woken yet.
TEST(WaitClockTest, OfSeveralWithOneConditionVariableEachIsAwaited) {
  constexpr int kRounds = 300;
  SimulatedWaitClock clock;
  const absl::Time begin = clock.Now();
  Mutex mutex;
  CondVar changed;
  std::array<std::atomic<int>, 4> ticks{};
  std::vector<std::thread> threads;
  const auto wait_for = [&](int second) {
    const absl::Time time = begin + absl::Seconds(second);
    const MutexLock lock(mutex);
    while (clock.Now() < time) clock.WaitUntil(changed, mutex, time);
  };
  for (std::atomic<int>& mine : ticks)
    threads.emplace_back([&] {
      while (mine < kRounds) {
        wait_for(mine + 1);
        ++mine;
      }
    });
  threads.emplace_back([&] { wait_for(kRounds); });
  for (int round = 0; round < kRounds; ++round) {
    clock.AwaitWaiters(threads.size());
    for (const std::atomic<int>& tick : ticks) EXPECT_EQ(tick, round);
    clock.Advance(absl::Seconds(1));
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(WaitClockTest, APastDeadlineIsNoWait) {
  Mutex mutex;
  CondVar changed;
  const MutexLock lock(mutex);
  RealWaitClock().WaitUntil(changed, mutex, RealWaitClock().Now() - absl::Seconds(1));
  SimulatedWaitClock simulated;
  simulated.WaitUntil(changed, mutex, simulated.Now());
}

TEST(TurnLockTest, WhoAsksFirstComesFirst) {
  TurnLock lock;
  std::vector<int> order;
  lock.Lock();
  std::thread other([&] {
    const HoldTurn turn(lock);
    order.push_back(2);
  });
  while (lock.waiting() < 1) std::this_thread::yield();
  order.push_back(1);
  lock.Unlock();
  {
    // A Mutex could be taken again here before the other thread wakes up.
    const HoldTurn again(lock);
    order.push_back(3);
  }
  other.join();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

}  // namespace
}  // namespace muster::wait_clock_test
