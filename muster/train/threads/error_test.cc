#include "muster/train/threads/error.h"

#include <gtest/gtest.h>

#include <csignal>
#include <stdexcept>

#include "muster/base/text/program_name.h"
#include "muster/base/wrong_configuration.h"

namespace muster::error_test {
namespace {

TEST(ErrorTest, ExitCodesSayWhetherTryingAgainIsWorthIt) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), ExitCode::kDone);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("ps lost")), ExitCode::kRetry);
  EXPECT_EQ(ExitCodeOf(absl::AbortedError("ps restarted")), ExitCode::kRetry);
  EXPECT_EQ(ExitCodeOf(absl::DeadlineExceededError("no chief")), ExitCode::kRetry);
  for (const absl::Status& status : {absl::InternalError("NaN"), absl::FailedPreconditionError("second chief"),
                                     absl::DataLossError("corrupt"), absl::PermissionDeniedError("another job")})
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kFailed) << status;
  EXPECT_EQ(ExitCodeOf(WrongConfigurationError("no ps")), ExitCode::kUsage);
}

[[noreturn]] void Throw() { throw std::runtime_error("something else"); }

TEST(ErrorTest, CarriesTheStatus) {
  EXPECT_NO_THROW(ThrowIfError(absl::OkStatus()));
  try {
    ThrowIfError(absl::UnavailableError("ps:1 is gone"));
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "ps:1 is gone");
    EXPECT_EQ(error.status(), absl::UnavailableError("ps:1 is gone"));
    EXPECT_EQ(error.exit_code(), ExitCode::kRetry);
  }
}

TEST(ErrorTest, AnExceptionHasAStatus) {
  EXPECT_EQ(ErrorOf(std::make_exception_ptr(Error(absl::DataLossError("bad")))), absl::DataLossError("bad"));
  EXPECT_EQ(ErrorOf(std::make_exception_ptr(std::runtime_error("why"))), absl::InternalError("why"));
  EXPECT_TRUE(absl::IsInternal(ErrorOf(std::make_exception_ptr(1))));
}

TEST(ErrorDeathTest, AnUncaughtErrorIsOneLineAndItsExitCode) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto throw_uncaught = [] {
    HandleUncaughtErrors();
    const auto thrower = []() noexcept { ThrowIfError(absl::UnavailableError("ps:1 is gone")); };
    thrower();
  };
  EXPECT_EXIT(throw_uncaught(), ::testing::ExitedWithCode(138), "^" + ProgramName() + ": ps:1 is gone\n$");
}

TEST(ErrorDeathTest, AnotherExceptionEndsTheProcessAsBefore) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto throw_uncaught = [] {
    HandleUncaughtErrors();
    const auto thrower = []() noexcept { Throw(); };
    thrower();
  };
  EXPECT_EXIT(throw_uncaught(), ::testing::KilledBySignal(SIGABRT), "something else");
}

}  // namespace
}  // namespace muster::error_test
