#include "muster/launch/supervise/signal_echo.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace muster::signal_echo_test {
namespace {

class SignalEchoTest : public ::testing::Test {
 protected:
  bool IsEcho(uint32_t number, uint32_t sender, absl::Duration after) {
    return echo_.IsEcho(number, sender, now_ + after);
  }

  const absl::Time now_ = absl::FromUnixSeconds(1000);
  SignalEcho echo_;
};

TEST_F(SignalEchoTest, TheSameOfTheSameSenderAtOnceIsOne) {
  EXPECT_FALSE(IsEcho(SIGTERM, 7, absl::ZeroDuration()));
  EXPECT_TRUE(IsEcho(SIGTERM, 7, absl::ZeroDuration()));
  EXPECT_TRUE(IsEcho(SIGTERM, 7, absl::Milliseconds(299)));
}

TEST_F(SignalEchoTest, LaterItIsMeantAgainHoweverManyEchoesThereWere) {
  EXPECT_FALSE(IsEcho(SIGTERM, 7, absl::ZeroDuration()));
  EXPECT_TRUE(IsEcho(SIGTERM, 7, absl::Milliseconds(200)));
  EXPECT_FALSE(IsEcho(SIGTERM, 7, absl::Milliseconds(300)));
  EXPECT_TRUE(IsEcho(SIGTERM, 7, absl::Milliseconds(301)));
}

TEST_F(SignalEchoTest, AnotherSignalOrSenderCounts) {
  EXPECT_FALSE(IsEcho(SIGTERM, 7, absl::ZeroDuration()));
  EXPECT_FALSE(IsEcho(SIGINT, 7, absl::ZeroDuration()));
  EXPECT_FALSE(IsEcho(SIGINT, 8, absl::ZeroDuration()));
}

TEST_F(SignalEchoTest, WhatAnotherPassesOnIsOneButWhatTheProcessSendsItselfIsnt) {
  echo_ = SignalEcho(5);
  EXPECT_FALSE(IsEcho(SIGTERM, 7, absl::ZeroDuration()));
  EXPECT_TRUE(IsEcho(SIGTERM, 8, absl::Milliseconds(1900)));
  EXPECT_FALSE(IsEcho(SIGTERM, 8, absl::Milliseconds(2100)));
  EXPECT_FALSE(IsEcho(SIGTERM, 5, absl::Milliseconds(2200)));
  EXPECT_FALSE(IsEcho(SIGTERM, 7, absl::Milliseconds(2300)));
  EXPECT_FALSE(IsEcho(SIGINT, 8, absl::Milliseconds(2300)));
}

TEST_F(SignalEchoTest, EveryKeyAtTheTerminalCounts) {
  EXPECT_FALSE(IsEcho(SIGINT, 0, absl::ZeroDuration()));
  EXPECT_FALSE(IsEcho(SIGINT, 0, absl::ZeroDuration()));
}

}  // namespace
}  // namespace muster::signal_echo_test
