#include "muster/transport/io/tcp_event_loop.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::tcp_event_loop_test {
namespace {

using ::testing::ElementsAre;

class TcpEventLoopTest : public ::testing::Test {
 protected:
  EventLoop::Handler Note(const std::string& what) {
    return [this, what] { ran_.push_back(what); };
  }
  bool RunUntilRan(size_t count) {
    return loop_.RunUntil([&] { return ran_.size() >= count; }, loop_.Now() + absl::Seconds(20));
  }

  TcpEventLoop loop_;
  std::vector<std::string> ran_;
};

TEST_F(TcpEventLoopTest, PostedHandlersRunInOrderAndTimersWhenDue) {
  const absl::Time start = loop_.Now();
  loop_.CallAt(start + absl::Milliseconds(20), Note("20 ms"));
  loop_.CallAt(start + absl::Milliseconds(10), Note("10 ms"));
  const EventLoop::TimerId cancelled = loop_.CallAt(start + absl::Milliseconds(5), Note("cancelled"));
  loop_.CancelTimer(cancelled);
  loop_.Post(Note("a"));
  loop_.Post(Note("b"));
  EXPECT_TRUE(RunUntilRan(4));
  EXPECT_THAT(ran_, ElementsAre("a", "b", "10 ms", "20 ms"));
  EXPECT_GE(loop_.Now(), start + absl::Milliseconds(20));
}

TEST_F(TcpEventLoopTest, DoneIsAskedFirstAndAfterEachHandler) {
  loop_.Post(Note("a"));
  loop_.Post(Note("b"));
  EXPECT_TRUE(loop_.RunUntil([] { return true; }, absl::InfiniteFuture()));
  EXPECT_TRUE(ran_.empty());
  EXPECT_TRUE(RunUntilRan(1));
  EXPECT_THAT(ran_, ElementsAre("a"));
}

TEST_F(TcpEventLoopTest, ADeadlineInThePastRunsWhatIsReadyAndReturns) {
  loop_.Post([this] {
    ran_.push_back("once");
    loop_.Post(Note("again"));
  });
  EXPECT_FALSE(loop_.RunUntil([] { return false; }, absl::InfinitePast()));
  EXPECT_THAT(ran_, ElementsAre("once"));
  const absl::Time start = loop_.Now();
  EXPECT_FALSE(loop_.RunUntil([] { return false; }, start + absl::Milliseconds(10)));
  EXPECT_GE(loop_.Now(), start + absl::Milliseconds(10));
}

TEST_F(TcpEventLoopTest, AHandlerThatPostsItselfStarvesNobody) {
  bool stop = false;
  std::function<void()> busy = [&] {
    if (!stop) loop_.Post([&] { busy(); });
  };
  busy();
  loop_.CallAt(loop_.Now() + absl::Milliseconds(5), Note("timer"));
  EXPECT_TRUE(RunUntilRan(1));
  EXPECT_FALSE(loop_.RunUntil([] { return false; }, loop_.Now() + absl::Milliseconds(5))) << "the deadline is kept";
  stop = true;
}

TEST_F(TcpEventLoopTest, HandlersMayWait) {
  loop_.Post([this] {
    loop_.Post(Note("inner"));
    EXPECT_TRUE(RunUntilRan(1));
    ran_.push_back("outer");
  });
  EXPECT_TRUE(RunUntilRan(2));
  EXPECT_THAT(ran_, ElementsAre("inner", "outer"));
}

// Each post wakes a sleeping loop; otherwise this would take 20 s a round.
TEST_F(TcpEventLoopTest, PostFromAnotherThreadWakesASleepingLoop) {
  std::atomic<int> seen{0};
  std::thread other([&] {
    for (int i = 0; i < 100; ++i) {
      loop_.Post([&] { ++seen; });
      while (seen.load() <= i) std::this_thread::yield();
    }
  });
  EXPECT_TRUE(loop_.RunUntil([&] { return seen.load() == 100; }, loop_.Now() + absl::Seconds(60)));
  other.join();
}

TEST_F(TcpEventLoopTest, WhatHasntRunIsDroppedAtTheEnd) {
  auto token = std::make_shared<int>(0);
  {
    TcpEventLoop loop;
    loop.Post([token] { ADD_FAILURE(); });
    loop.CallAt(loop.Now(), [token] { ADD_FAILURE(); });
    EXPECT_EQ(token.use_count(), 3);
  }
  EXPECT_EQ(token.use_count(), 1);
}

}  // namespace
}  // namespace muster::tcp_event_loop_test
