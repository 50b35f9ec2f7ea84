#include "muster/launch/task/restart_policy.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace muster::restart_policy_test {
namespace {

TEST(RestartPolicy, ExitCodesAreSortedAsTfJobDoes) {
  for (const int code : {130, 137, 138, 143}) EXPECT_TRUE(IsRetryable({.code = code})) << code;
  for (const int code : {0, 1, 2, 3, 126, 127, 128, 131, 139, 255}) EXPECT_FALSE(IsRetryable({.code = code})) << code;
}

TEST(RestartPolicy, WhoWasKilledIsTriedAgainUnlessItWasTheProgramsOwnMistake) {
  for (const int number : {SIGKILL, SIGTERM, SIGINT, SIGHUP, SIGUSR1}) {
    EXPECT_TRUE(IsRetryable({.signal = number})) << number;
  }
  for (const int number : {SIGSEGV, SIGABRT, SIGILL, SIGFPE, SIGBUS}) {
    EXPECT_FALSE(IsRetryable({.signal = number})) << number;
  }
}

TEST(RestartPolicy, WhoHasEndedAtASignalToItsJobIsTriedAgain) {
  for (const int code : {0, 1}) {
    EXPECT_TRUE(IsRetryable({.code = code, .at_signal = true}));
    EXPECT_TRUE(IsRetryableInForeground({.code = code, .at_signal = true}));
  }
}

TEST(RestartPolicy, WhoNeedsMoreThanItsMemoryIsNotTriedAgain) {
  EXPECT_FALSE(IsRetryable({.signal = SIGKILL, .over_memory = 1 << 20}));
}

TEST(RestartPolicy, InTheForegroundAnySignalCountsAndAnInterruptDoesNot) {
  EXPECT_TRUE(IsRetryableInForeground({.signal = SIGSEGV}));
  EXPECT_TRUE(IsRetryableInForeground({.signal = SIGKILL}));
  for (const int code : {137, 138, 143}) EXPECT_TRUE(IsRetryableInForeground({.code = code})) << code;
  for (const int code : {0, 1, 130, 139}) EXPECT_FALSE(IsRetryableInForeground({.code = code})) << code;
}

}  // namespace
}  // namespace muster::restart_policy_test
