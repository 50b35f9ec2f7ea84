#include "muster/transport/simulated/simulated_event_loop.h"

#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/transport/timer_queue.h"

namespace muster::simulated_event_loop_test {
namespace {

using ::testing::ElementsAre;

class SimulatedEventLoopTest : public ::testing::Test {
 protected:
  EventLoop::Handler Note(const std::string& what) {
    return [this, what] { ran_.push_back(what); };
  }
  bool Run(absl::Duration time) {
    return loop_.RunUntil([] { return false; }, loop_.Now() + time);
  }

  SimulatedClock clock_;
  SimulatedEventLoop loop_{clock_};
  const absl::Time start_ = loop_.Now();
  std::vector<std::string> ran_;
};

TEST_F(SimulatedEventLoopTest, RunsInTheOrderOfTimeAndThenOfAsking) {
  loop_.CallAt(start_ + absl::Seconds(2), Note("2s"));
  loop_.CallAt(start_ + absl::Seconds(1), Note("1s, first"));
  loop_.CallAt(start_ + absl::Seconds(1), Note("1s, second"));
  loop_.Post(Note("posted"));
  loop_.CallAt(start_ - absl::Seconds(5), Note("past"));
  Run(absl::Seconds(10));
  EXPECT_THAT(ran_, ElementsAre("posted", "past", "1s, first", "1s, second", "2s"));
  EXPECT_EQ(loop_.Now(), start_ + absl::Seconds(10));
}

TEST_F(SimulatedEventLoopTest, TheClockStopsWhereTheWaitEnds) {
  bool done = false;
  loop_.CallAt(start_ + absl::Seconds(3), [&] { done = true; });
  loop_.CallAt(start_ + absl::Seconds(4), Note("later"));
  EXPECT_TRUE(loop_.RunUntil([&] { return done; }, absl::InfiniteFuture()));
  EXPECT_EQ(loop_.Now(), start_ + absl::Seconds(3));
  EXPECT_TRUE(ran_.empty());
  EXPECT_TRUE(loop_.RunUntil([] { return true; }, absl::InfiniteFuture())) << "asked before anything runs";
  EXPECT_TRUE(ran_.empty());
}

TEST_F(SimulatedEventLoopTest, WithNothingLeftToHappenItReturns) {
  loop_.Post(Note("a"));
  EXPECT_FALSE(loop_.RunUntil([] { return false; }, absl::InfiniteFuture()));
  EXPECT_EQ(loop_.Now(), start_);
  EXPECT_THAT(ran_, ElementsAre("a"));
}

TEST_F(SimulatedEventLoopTest, CancelledTimersDontRun) {
  const EventLoop::TimerId timer = loop_.CallAt(start_ + absl::Seconds(1), Note("cancelled"));
  const EventLoop::TimerId other = loop_.CallAt(start_ + absl::Seconds(1), Note("runs"));
  loop_.CancelTimer(timer);
  Run(absl::Seconds(2));
  loop_.CancelTimer(timer);
  loop_.CancelTimer(other);
  EXPECT_THAT(ran_, ElementsAre("runs"));
}

TEST_F(SimulatedEventLoopTest, HandlersMayPostWaitAndSetTimers) {
  loop_.Post([this] {
    ran_.push_back("outer");
    loop_.Post(Note("inner"));
    loop_.CallAt(start_ + absl::Seconds(1), Note("timer"));
    Run(absl::Seconds(5));
    ran_.push_back("outer ends");
  });
  Run(absl::Seconds(1));
  EXPECT_THAT(ran_, ElementsAre("outer", "inner", "timer", "outer ends"));
  EXPECT_EQ(loop_.Now(), start_ + absl::Seconds(5));
}

TEST_F(SimulatedEventLoopTest, RunReadyDoesntMoveTheClock) {
  loop_.Post([this] { loop_.Post(Note("follows")); });
  loop_.CallAt(start_ + absl::Nanoseconds(1), Note("later"));
  loop_.RunReady();
  EXPECT_THAT(ran_, ElementsAre("follows"));
  EXPECT_EQ(loop_.Now(), start_);
  clock_.Advance(absl::Seconds(1));
  loop_.RunReady();
  EXPECT_THAT(ran_, ElementsAre("follows", "later"));
}

TEST_F(SimulatedEventLoopTest, PostMayComeFromOtherThreads) {
  std::thread other([this] {
    for (int i = 0; i < 100; ++i) loop_.Post(Note(std::to_string(i)));
  });
  Run(absl::Milliseconds(1));
  other.join();
  Run(absl::Milliseconds(1));
  ASSERT_EQ(ran_.size(), 100);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(ran_[i], std::to_string(i));
}

TEST(TimerQueueTest, ManyCancelledTimersAreSweptOut) {
  TimerQueue queue;
  const absl::Time when = absl::FromUnixSeconds(1);
  std::vector<EventLoop::TimerId> timers;
  int ran = 0;
  for (int i = 0; i < 1000; ++i) timers.push_back(queue.Add(when + absl::Seconds(i), [&] { ++ran; }));
  for (int i = 0; i < 1000; ++i) {
    if (i % 10 != 5) queue.Cancel(timers[i]);
  }
  EXPECT_EQ(queue.NextDue(), when + absl::Seconds(5));
  EXPECT_FALSE(queue.TakeDue(when + absl::Seconds(4)));
  while (EventLoop::Handler handler = queue.TakeDue(when + absl::Seconds(1000))) handler();
  EXPECT_EQ(ran, 100);
  EXPECT_EQ(queue.NextDue(), absl::InfiniteFuture());
}

}  // namespace
}  // namespace muster::simulated_event_loop_test
