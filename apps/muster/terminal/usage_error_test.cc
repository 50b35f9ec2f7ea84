#include "apps/muster/terminal/usage_error.h"

#include <gtest/gtest.h>

namespace muster::usage_error_test {
namespace {

TEST(UsageErrorTest, IsOneLineAndCodeTwo) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(UsageError("ps", absl::InvalidArgumentError("what\nfor")), 2);
  EXPECT_EQ(UsageError("", absl::InternalError("no")), 2);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "muster ps: what\\x0afor\nmuster: no\n");
}

}  // namespace
}  // namespace muster::usage_error_test
