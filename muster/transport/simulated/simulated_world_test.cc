#include "muster/transport/simulated/simulated_world.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "muster/transport/simulated/simulated_process.h"

namespace muster::simulated_world_test {
namespace {

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

}  // namespace
}  // namespace muster::simulated_world_test
