#include "muster/base/os/descriptor_limit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace muster::descriptor_limit_test {
namespace {

TEST(DescriptorLimitTest, TheSoftLimitIsRaisedToTheHardOne) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_EQ(DescriptorLimit(), 64);
  const size_t raised = RaiseDescriptorLimit();
  EXPECT_EQ(DescriptorLimit(), raised);
  rlimit after = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_cur, after.rlim_max);
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace muster::descriptor_limit_test
