#include "muster/train/threads/coordinator.h"

#include <gmock/gmock.h>

#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "muster/train/tensorflow/looper_thread.h"
#include "muster/train/threads/coordinated_thread.h"
#include "muster/train/threads/error.h"

namespace muster::coordinator_test {
namespace {

using ::testing::ElementsAre;

class CoordinatorTest : public ::testing::Test {
 protected:
  // A thread that does nothing until the stop.
  std::unique_ptr<CoordinatedThread> Idle(const std::string& name) {
    return std::make_unique<CoordinatedThread>(coordinator_, name, [this] {
      coordinator_.WaitForStop();
      return absl::OkStatus();
    });
  }

  SimulatedWaitClock clock_;
  Coordinator coordinator_{{.clock = &clock_}};
};

TEST_F(CoordinatorTest, OneStopsAllAndJoinIsOk) {
  const auto a = Idle("a");
  const auto b = Idle("b");
  EXPECT_FALSE(coordinator_.ShouldStop());
  coordinator_.RequestStop();
  EXPECT_TRUE(coordinator_.ShouldStop());
  EXPECT_EQ(coordinator_.Join(), absl::OkStatus());
}

TEST_F(CoordinatorTest, JoinReturnsWhenAllThreadsHaveEndedWithoutAStop) {
  const CoordinatedThread thread(coordinator_, "a", [] { return absl::OkStatus(); });
  EXPECT_EQ(coordinator_.Join(), absl::OkStatus());
  EXPECT_FALSE(coordinator_.ShouldStop());
}

TEST_F(CoordinatorTest, TheFirstErrorIsKept) {
  const auto idle = Idle("idle");
  const CoordinatedThread failing(coordinator_, "failing", [] { return absl::DataLossError("first"); });
  EXPECT_TRUE(coordinator_.WaitForStop());
  EXPECT_EQ(coordinator_.RequestStop(absl::InternalError("second")), absl::OkStatus());
  EXPECT_EQ(coordinator_.Join(), absl::DataLossError("first"));
  EXPECT_EQ(coordinator_.requested_error(), absl::DataLossError("first"));
  EXPECT_EQ(coordinator_.requested_exception(), nullptr);
}

TEST_F(CoordinatorTest, AnErrorAfterACleanStopIsItsConsequence) {
  coordinator_.RequestStop();
  EXPECT_EQ(coordinator_.RequestStop(absl::InternalError("cancelled")), absl::OkStatus());
  EXPECT_EQ(coordinator_.Join(), absl::OkStatus());
}

TEST_F(CoordinatorTest, AnExceptionIsKeptAsItIs) {
  EXPECT_FALSE(coordinator_.StopOnError([]() -> absl::Status { throw std::out_of_range("nine"); }));
  EXPECT_EQ(coordinator_.Join(), absl::InternalError("nine"));
  EXPECT_THROW(std::rethrow_exception(coordinator_.requested_exception()), std::out_of_range);
}

TEST_F(CoordinatorTest, OutOfRangeIsACleanStopUnlessToldOtherwise) {
  EXPECT_EQ(coordinator_.RequestStop(absl::OutOfRangeError("no more input")), absl::OkStatus());
  EXPECT_TRUE(coordinator_.ShouldStop());
  EXPECT_EQ(coordinator_.Join(), absl::OkStatus());
  Coordinator strict({.clean_stop = {}});
  EXPECT_EQ(strict.RequestStop(absl::OutOfRangeError("no more input")), absl::OkStatus());
  EXPECT_EQ(strict.Join(), absl::OutOfRangeError("no more input"));
}

TEST_F(CoordinatorTest, AfterJoinAnErrorGoesToWhoReportsIt) {
  EXPECT_FALSE(coordinator_.joined());
  EXPECT_EQ(coordinator_.Join(), absl::OkStatus());
  EXPECT_TRUE(coordinator_.joined());
  EXPECT_EQ(coordinator_.RequestStop(absl::InternalError("late")), absl::InternalError("late"));
  EXPECT_EQ(coordinator_.RequestStop(absl::OutOfRangeError("late")), absl::OkStatus());
  EXPECT_EQ(coordinator_.requested_error(), absl::OkStatus());
}

class StragglerTest : public CoordinatorTest {
 protected:
  // Joins while `second` and `fourth` don't end, and lets the grace period pass.
  absl::Status JoinPastTheGracePeriod(const CoordinatorJoinOptions& options) {
    absl::Status joined;
    std::vector<Coordinator::Registration> threads;
    for (const char* name : {"first", "second", "third", "fourth"}) threads.push_back(coordinator_.Register(name));
    coordinator_.RequestStop();
    std::thread joiner([&] { joined = coordinator_.Join(options); });
    clock_.AwaitWaiters(1);
    {
      const Coordinator::Registration third = std::move(threads[2]);
      const Coordinator::Registration first = std::move(threads[0]);
    }
    clock_.Advance(options.stop_grace_period - absl::Seconds(1));
    clock_.AwaitWaiters(1);
    clock_.Advance(absl::Seconds(1));
    joiner.join();
    return joined;
  }
};

TEST_F(StragglerTest, WhoDoesNotEndInTheGracePeriodIsNamed) {
  const absl::Time begin = clock_.Now();
  EXPECT_EQ(JoinPastTheGracePeriod({}),
            absl::FailedPreconditionError("Coordinator stopped with threads still running: second fourth"));
  EXPECT_TRUE(coordinator_.joined());
  EXPECT_EQ(clock_.Now() - begin, absl::Seconds(120)) << "TensorFlow's default";
}

TEST_F(StragglerTest, UnlessTheyAreIgnored) {
  EXPECT_EQ(JoinPastTheGracePeriod({.stop_grace_period = absl::Seconds(5), .ignore_live_threads = true}),
            absl::OkStatus());
}

TEST_F(StragglerTest, AnErrorSaysMoreThanTheirNames) {
  EXPECT_EQ(coordinator_.RequestStop(absl::DataLossError("why")), absl::OkStatus());
  EXPECT_EQ(JoinPastTheGracePeriod({}), absl::DataLossError("why"));
}

TEST_F(CoordinatorTest, WaitForStopHasItsTimeout) {
  bool stopped = true;
  std::thread waiter([&] { stopped = coordinator_.WaitForStop(absl::Seconds(3)); });
  clock_.AwaitWaiters(1);
  clock_.Advance(absl::Seconds(3));
  waiter.join();
  EXPECT_FALSE(stopped);
  coordinator_.RequestStop();
  EXPECT_TRUE(coordinator_.WaitForStop(absl::ZeroDuration()));
}

TEST_F(CoordinatorTest, ClearStopMakesItAsNew) {
  EXPECT_EQ(coordinator_.RequestStop(absl::DataLossError("why")), absl::OkStatus());
  EXPECT_FALSE(coordinator_.joined()) << "a stop isn't its end";
  EXPECT_EQ(coordinator_.Join(), absl::DataLossError("why"));
  EXPECT_TRUE(coordinator_.joined());
  EXPECT_EQ(coordinator_.ClearStop(), absl::OkStatus());
  EXPECT_FALSE(coordinator_.ShouldStop());
  EXPECT_FALSE(coordinator_.joined());
  EXPECT_EQ(coordinator_.requested_error(), absl::OkStatus());
  EXPECT_EQ(coordinator_.RequestStop(absl::InternalError("again")), absl::OkStatus());
  EXPECT_EQ(coordinator_.Join(), absl::InternalError("again"));
}

class LooperThreadTest : public CoordinatorTest {
 protected:
  LooperThreadOptions Every(absl::Duration interval) { return {.interval = interval, .clock = &clock_}; }
};

TEST_F(LooperThreadTest, CallsAtOnceAndThenEveryInterval) {
  const absl::Time begin = clock_.Now();
  std::vector<int64_t> calls;
  std::vector<std::string> story;
  LooperThreadOptions options = Every(absl::Seconds(10));
  options.start_loop = [&] { return story.push_back("start"), absl::OkStatus(); };
  options.stop_loop = [&] { return story.push_back("stop"), absl::OkStatus(); };
  {
    const LooperThread looper(coordinator_, options, [&] {
      calls.push_back(absl::ToInt64Seconds(clock_.Now() - begin));
      return absl::OkStatus();
    });
    clock_.AwaitWaiters(1);
    clock_.Advance(absl::Seconds(7));
    clock_.AwaitWaiters(1);
    for (int i = 0; i < 2; ++i) {
      clock_.Advance(absl::Seconds(i == 0 ? 3 : 10));
      clock_.AwaitWaiters(1);
    }
    coordinator_.RequestStop();
    EXPECT_EQ(coordinator_.Join(), absl::OkStatus());
  }
  EXPECT_THAT(calls, ElementsAre(0, 10, 20));
  EXPECT_THAT(story, ElementsAre("start", "stop"));
}

TEST_F(LooperThreadTest, ALongCallIsFollowedAtOnceAndTheRhythmStays) {
  const absl::Time begin = clock_.Now();
  std::vector<int64_t> calls;
  {
    const LooperThread looper(coordinator_, Every(absl::Seconds(10)), [&] {
      calls.push_back(absl::ToInt64Seconds(clock_.Now() - begin));
      if (calls.size() == 1) clock_.Advance(absl::Seconds(12));
      return absl::OkStatus();
    });
    clock_.AwaitWaiters(1);
    clock_.Advance(absl::Seconds(8));
    clock_.AwaitWaiters(1);
    coordinator_.RequestStop();
  }
  EXPECT_THAT(calls, ElementsAre(0, 12, 20));
}

TEST_F(LooperThreadTest, WithoutAnIntervalOneCallFollowsTheOther) {
  int calls = 0;
  const LooperThread looper(coordinator_, Every(absl::ZeroDuration()), [&] {
    if (++calls == 1000) coordinator_.RequestStop();
    return absl::OkStatus();
  });
  EXPECT_EQ(coordinator_.Join(), absl::OkStatus());
  EXPECT_EQ(calls, 1000);
}

TEST_F(LooperThreadTest, AnErrorOrAnExceptionStopsEverybody) {
  for (const bool throws : {false, true}) {
    Coordinator coordinator({.clock = &clock_});
    bool ended = false;
    LooperThreadOptions options = Every(absl::Seconds(1));
    options.stop_loop = [&] { return ended = true, absl::OkStatus(); };
    const LooperThread looper(coordinator, options, [throws]() -> absl::Status {
      if (throws) throw Error(absl::DataLossError("bad"));
      return absl::DataLossError("bad");
    });
    EXPECT_EQ(coordinator.Join(), absl::DataLossError("bad"));
    EXPECT_TRUE(coordinator.ShouldStop());
    EXPECT_FALSE(ended);
  }
}

}  // namespace
}  // namespace muster::coordinator_test
