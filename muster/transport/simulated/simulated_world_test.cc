#include "muster/transport/simulated/simulated_world.h"

#include <gmock/gmock.h>
#include <pthread.h>

#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "muster/transport/simulated/simulated_process.h"

namespace muster::simulated_world_test {
namespace {

using ::testing::ElementsAre;

const auto kNever = [] { return false; };

TEST(SimulatedWorldTest, ProcessesTakeTurnsInTheOrderOfTime) {
  SimulatedWorld world(1);
  const absl::Time start = world.Now();
  std::vector<std::string> events;
  for (const std::string name : {"a", "b"}) {
    SimulatedThread& thread = world.NewProcess(name).NewThread();
    thread.Start([&events, &thread, name] {
      for (int i = 1; i <= 3; ++i) {
        thread.loop().RunUntil(kNever, thread.loop().Now() + (name == "a" ? absl::Seconds(2) : absl::Seconds(3)));
        events.push_back(name + std::to_string(i));
      }
    });
  }
  EXPECT_EQ(world.Run(kNever, {}), SimulatedWorld::Ending::kStuck);
  // Both are due at 6 s, so the seed decides.
  ASSERT_EQ(events.size(), 6u);
  EXPECT_EQ(events[0] + events[1] + events[2], "a1b1a2");
  EXPECT_EQ(events[5], "b3");
  EXPECT_EQ(world.Now() - start, absl::Seconds(9));
}

TEST(SimulatedWorldTest, AHandlerWakesTheThreadThatWaitsForIt) {
  SimulatedWorld world(1);
  SimulatedThread& waiting = world.NewProcess("waiting").NewThread();
  SimulatedThread& other = world.NewProcess("other").NewThread();
  bool came = false;
  bool saw = false;
  waiting.Start([&] { saw = waiting.loop().RunUntil([&] { return came; }, absl::InfiniteFuture()); });
  other.Start([&] {
    other.Compute(absl::Seconds(1));
    waiting.loop().Post([&] { came = true; });
  });
  world.Run(kNever, {});
  EXPECT_TRUE(saw);
}

TEST(SimulatedWorldTest, WhoBeganToWaitFirstCanBeOverFirst) {
  SimulatedWorld world;
  SimulatedThread& first = world.NewProcess("first").NewThread();
  SimulatedThread& second = world.NewProcess("second").NewThread();
  bool go = false;
  std::vector<std::string> happened;
  first.Start([&] {
    EXPECT_TRUE(first.loop().RunUntil([&] { return go; }, absl::InfiniteFuture()));
    happened.emplace_back("first");
    second.loop().Post([] {});
  });
  second.Start([&] {
    first.loop().CallAt(world.Now() + absl::Seconds(1), [&] { go = true; });
    EXPECT_TRUE(second.loop().RunUntil([&] { return !happened.empty(); }, absl::InfiniteFuture()));
    happened.emplace_back("second");
  });
  world.Run(kNever, {});
  EXPECT_EQ(happened, (std::vector<std::string>{"first", "second"}));
}

TEST(SimulatedWorldTest, AWaitEndsAtItsDeadline) {
  SimulatedWorld world;
  const absl::Time deadline = world.Now() + absl::Seconds(3);
  SimulatedThread& thread = world.NewProcess("waiting").NewThread();
  thread.Start([&] { EXPECT_FALSE(thread.loop().RunUntil(kNever, deadline)); });
  world.Run([&] { return thread.ended(); }, {});
  EXPECT_EQ(world.Now(), deadline);
}

TEST(SimulatedWorldTest, HandlersWaitWhileAThreadComputes) {
  SimulatedWorld world(1);
  SimulatedThread& thread = world.NewProcess("computing").NewThread();
  const absl::Time start = world.Now();
  absl::Time ran;
  thread.Start([&] {
    thread.loop().CallAt(start + absl::Seconds(1), [&] { ran = world.Now(); });
    thread.Compute(absl::Seconds(5));
    thread.loop().RunUntil(kNever, start + absl::Seconds(6));
  });
  world.Run(kNever, {});
  EXPECT_EQ(ran - start, absl::Seconds(5));
}

TEST(SimulatedWorldTest, AKilledProcessIsUnwoundAndItsEventsNeverCome) {
  SimulatedWorld world(1);
  SimulatedProcess& process = world.NewProcess("victim");
  SimulatedThread& thread = process.NewThread();
  auto alive = std::make_shared<int>(0);
  std::weak_ptr<int> on_stack = alive;
  bool went_on = false;
  bool told = false;
  process.AtDeath([&] { told = true; });
  thread.Start([&, alive = std::move(alive)] {
    const std::shared_ptr<int> local = alive;
    thread.loop().CallAt(world.Now() + absl::Seconds(5), [&] { went_on = true; });
    thread.loop().RunUntil(kNever, absl::InfiniteFuture());
    went_on = true;
  });
  world.At(world.Now() + absl::Seconds(1), [&] { process.Kill(); });
  world.Run(kNever, {});
  EXPECT_TRUE(process.ended());
  EXPECT_TRUE(told);
  EXPECT_FALSE(went_on);
  EXPECT_EQ(on_stack.use_count(), 1);  // the body's own
}

TEST(SimulatedWorldTest, AStoppedProcessSeesEverythingLaterAndInOrder) {
  SimulatedWorld world(1);
  SimulatedProcess& process = world.NewProcess("stopped");
  SimulatedThread& thread = process.NewThread();
  const absl::Time start = world.Now();
  std::vector<int> order;
  std::vector<absl::Time> when;
  thread.Start([&] {
    for (int i = 1; i <= 20; ++i)
      thread.loop().CallAt(start + absl::Seconds(i), [&, i] {
        order.push_back(i);
        when.push_back(world.Now());
      });
    thread.loop().RunUntil(kNever, start + absl::Minutes(1));
  });
  world.At(start + absl::Milliseconds(2500), [&] { process.Pause(start + absl::Seconds(18)); });
  world.Run(kNever, {});
  for (int i = 0; i < 20; ++i) EXPECT_EQ(order.at(i), i + 1);
  EXPECT_EQ(when[1], start + absl::Seconds(2));
  EXPECT_EQ(when[2], start + absl::Seconds(18));
  EXPECT_EQ(when[19], start + absl::Seconds(20));
}

TEST(SimulatedWorldTest, WhoDiesInAHandlerLeavesItsRobustMutexToTheNext) {
  SimulatedWorld world(1);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_t mutex;
  pthread_mutex_init(&mutex, &attributes);
  SimulatedProcess& victim = world.NewProcess("victim");
  SimulatedThread& dying = victim.NewThread();
  dying.Start([&] {
    ASSERT_EQ(pthread_mutex_lock(&mutex), 0);
    dying.loop().Post([&] { victim.Die(); });
    dying.loop().RunUntil(kNever, absl::InfiniteFuture());
  });
  SimulatedThread& next = world.NewProcess("next").NewThread();
  int error = 0;
  next.Start([&] {
    next.Compute(absl::Seconds(1));
    error = pthread_mutex_lock(&mutex);
    pthread_mutex_consistent(&mutex);
    pthread_mutex_unlock(&mutex);
  });
  world.Run(kNever, {});
  EXPECT_EQ(error, EOWNERDEAD);
  pthread_mutex_destroy(&mutex);
}

TEST(SimulatedWorldTest, TooLongIsSaid) {
  SimulatedWorld world(1);
  SimulatedThread& thread = world.NewProcess("for ever").NewThread();
  thread.Start([&] {
    while (true) thread.Compute(absl::Minutes(1));
  });
  EXPECT_EQ(world.Run(kNever, {.time = absl::Hours(1)}), SimulatedWorld::Ending::kTooLong);
}

class WorldLoopTest : public ::testing::Test {
 protected:
  EventLoop::Handler Note(const std::string& what) {
    return [this, what] { ran_.push_back(what); };
  }
  bool Run(absl::Duration time) {
    return loop_.RunUntil([] { return false; }, loop_.Now() + time);
  }

  SimulatedWorld world_;
  EventLoop& loop_ = world_.loop();
  const absl::Time start_ = loop_.Now();
  std::vector<std::string> ran_;
};

TEST_F(WorldLoopTest, RunsInTheOrderOfTimeAndThenOfAsking) {
  loop_.CallAt(start_ + absl::Seconds(2), Note("2s"));
  loop_.CallAt(start_ + absl::Seconds(1), Note("1s, first"));
  loop_.CallAt(start_ + absl::Seconds(1), Note("1s, second"));
  loop_.Post(Note("posted"));
  loop_.CallAt(start_ - absl::Seconds(5), Note("past"));
  Run(absl::Seconds(10));
  EXPECT_THAT(ran_, ElementsAre("posted", "past", "1s, first", "1s, second", "2s"));
  EXPECT_EQ(loop_.Now(), start_ + absl::Seconds(10));
}

TEST_F(WorldLoopTest, TheClockStopsWhereTheWaitEnds) {
  bool done = false;
  loop_.CallAt(start_ + absl::Seconds(3), [&] { done = true; });
  loop_.CallAt(start_ + absl::Seconds(4), Note("later"));
  EXPECT_TRUE(loop_.RunUntil([&] { return done; }, absl::InfiniteFuture()));
  EXPECT_EQ(loop_.Now(), start_ + absl::Seconds(3));
  EXPECT_TRUE(ran_.empty());
  EXPECT_TRUE(loop_.RunUntil([] { return true; }, absl::InfiniteFuture())) << "asked before anything runs";
  EXPECT_TRUE(ran_.empty());
}

TEST_F(WorldLoopTest, WithNothingLeftToHappenItReturns) {
  loop_.Post(Note("a"));
  EXPECT_FALSE(loop_.RunUntil([] { return false; }, absl::InfiniteFuture()));
  EXPECT_EQ(loop_.Now(), start_);
  EXPECT_THAT(ran_, ElementsAre("a"));
}

TEST_F(WorldLoopTest, CancelledTimersDontRun) {
  const EventLoop::TimerId timer = loop_.CallAt(start_ + absl::Seconds(1), Note("cancelled"));
  const EventLoop::TimerId other = loop_.CallAt(start_ + absl::Seconds(1), Note("runs"));
  loop_.CancelTimer(timer);
  Run(absl::Seconds(2));
  loop_.CancelTimer(timer);
  loop_.CancelTimer(other);
  EXPECT_THAT(ran_, ElementsAre("runs"));
}

TEST_F(WorldLoopTest, HandlersMayPostWaitAndSetTimers) {
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

TEST_F(WorldLoopTest, RunReadyDoesntMoveTheClock) {
  loop_.Post([this] { loop_.Post(Note("follows")); });
  loop_.CallAt(start_ + absl::Nanoseconds(1), Note("later"));
  world_.RunReady();
  EXPECT_THAT(ran_, ElementsAre("follows"));
  EXPECT_EQ(loop_.Now(), start_);
  Run(absl::Nanoseconds(1));
  EXPECT_THAT(ran_, ElementsAre("follows", "later"));
}

TEST_F(WorldLoopTest, AnotherThreadOfTheWorldMayPost) {
  SimulatedThread& other = world_.NewProcess("other").NewThread();
  other.Start([this] {
    for (int i = 0; i < 100; ++i) loop_.Post(Note(std::to_string(i)));
  });
  Run(absl::Milliseconds(1));
  ASSERT_EQ(ran_.size(), 100);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(ran_[i], std::to_string(i));
}

TEST_F(WorldLoopTest, ItCanWaitForAProcessAndOnItsLoop) {
  SimulatedThread& thread = world_.NewProcess("process").NewThread();
  std::thread::id ran_by;
  bool go = false;
  thread.Start([&] { thread.loop().RunUntil([&] { return go; }, absl::InfiniteFuture()); });
  thread.loop().CallAt(start_ + absl::Seconds(1), [&] { ran_by = std::this_thread::get_id(); });
  EXPECT_TRUE(thread.loop().RunUntil([&] { return ran_by != std::thread::id(); }, absl::InfiniteFuture()));
  EXPECT_NE(ran_by, std::this_thread::get_id());
  const auto ended = [&] { return thread.ended(); };
  EXPECT_FALSE(loop_.RunUntil(ended, start_ + absl::Seconds(10)));
  EXPECT_EQ(loop_.Now(), start_ + absl::Seconds(10));
  thread.loop().Post([&] { go = true; });
  EXPECT_TRUE(loop_.RunUntil(ended, absl::InfiniteFuture()));
}

TEST(TimerQueueTest, ManyCancelledTimersAreSweptOut) {
  TimerQueue<EventLoop::Handler> queue;
  const absl::Time when = absl::FromUnixSeconds(1);
  std::vector<EventLoop::TimerId> timers;
  int ran = 0;
  for (int i = 0; i < 1000; ++i) timers.push_back(queue.Add(when + absl::Seconds(i), [&] { ++ran; }));
  for (int i = 0; i < 1000; ++i) {
    if (i % 10 != 5) queue.Cancel(timers[i]);
  }
  EXPECT_EQ(queue.NextDue(), when + absl::Seconds(5));
  while (queue.NextDue() < absl::InfiniteFuture()) queue.TakeFirst().second();
  EXPECT_EQ(ran, 100);
  EXPECT_EQ(queue.NextDue(), absl::InfiniteFuture());
}

}  // namespace
}  // namespace muster::simulated_world_test
