#include "muster/base/os/stop_signal.h"

#include <gtest/gtest.h>

#include <csignal>
#include <future>

namespace muster::stop_signal_test {
namespace {

TEST(StopSignalTest, WakesEveryListenerOnce) {
  std::promise<void> first, second;
  {
    StopSignal a([&] { first.set_value(); });
    StopSignal b([&] { second.set_value(); });
    EXPECT_FALSE(a.raised());
    std::raise(SIGTERM);
    first.get_future().wait();
    second.get_future().wait();
    EXPECT_TRUE(a.raised());
    EXPECT_TRUE(b.raised());
  }
  StopSignal fresh([] {});
  EXPECT_FALSE(fresh.raised());  // reinstalled: the old signal is forgotten
}

TEST(StopSignalTest, NotRaisedNotCalled) {
  bool called = false;
  {
    StopSignal quiet([&] { called = true; });
  }
  EXPECT_FALSE(called);
}

TEST(StopSignalDeathTest, TheSecondSignalEndsTheProcess) {
  EXPECT_EXIT(
      {
        StopSignal signal([] {});
        std::raise(SIGINT);
        std::raise(SIGINT);
      },
      testing::KilledBySignal(SIGINT), "");
}

TEST(StopSignalDeathTest, ASecondSigtermAtOnceIsTheSameRequest) {
  EXPECT_EXIT(
      {
        StopSignal signal([] {});
        std::raise(SIGTERM);
        std::raise(SIGTERM);
        std::raise(SIGINT);
      },
      testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace muster::stop_signal_test
