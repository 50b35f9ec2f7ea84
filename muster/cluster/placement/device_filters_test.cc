#include "muster/cluster/placement/device_filters.h"

#include <gmock/gmock.h>

namespace muster::device_filters_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr;

bool Allow(const std::vector<std::string>& filters, const std::string& device) {
  return DeviceFilters::Parse(filters).value().Allow(*DeviceSpec::Parse(device));
}

TEST(DeviceFiltersTest, WithoutFiltersEverythingFits) {
  EXPECT_TRUE(DeviceFilters().empty());
  EXPECT_TRUE(Allow({}, "/job:worker/replica:0/task:7/device:GPU:3"));
}

TEST(DeviceFiltersTest, OneFilterThatContradictsNothingIsEnough) {
  const std::vector<std::string> worker_1 = {"/job:ps", "/job:worker/task:1"};
  EXPECT_TRUE(Allow(worker_1, "/job:ps/replica:0/task:0/device:CPU:0"));
  EXPECT_TRUE(Allow(worker_1, "/job:ps/replica:0/task:9/device:CPU:0"));
  EXPECT_TRUE(Allow(worker_1, "/job:worker/replica:0/task:1/device:GPU:0"));
  EXPECT_FALSE(Allow(worker_1, "/job:worker/replica:0/task:0/device:CPU:0"));
  EXPECT_FALSE(Allow(worker_1, "/job:chief/replica:0/task:0/device:CPU:0"));
}

TEST(DeviceFiltersTest, WhatEitherLeavesOpenFits) {
  EXPECT_TRUE(Allow({"/task:1"}, "/job:ps/task:1"));
  EXPECT_FALSE(Allow({"/task:1"}, "/job:ps/task:0"));
  EXPECT_TRUE(Allow({"/job:worker/replica:3"}, "/job:worker/task:1"));
  EXPECT_FALSE(Allow({"/job:worker/replica:3"}, "/job:worker/replica:0/task:1"));
  EXPECT_FALSE(Allow({"/job:ps/device:GPU:*"}, "/job:ps/task:0/device:CPU:0"));
  EXPECT_TRUE(Allow({"/gpu:1"}, "/job:worker/task:0"));
  EXPECT_FALSE(Allow({"/gpu:1"}, "/job:worker/task:0/device:GPU:0"));
}

TEST(DeviceFiltersTest, WhatIsNoFilterIsNamed) {
  EXPECT_THAT(std::string(DeviceFilters::Parse({"/job:ps", "/jib:worker"}).status().message()),
              AllOf(HasSubstr("device_filters [1]"), HasSubstr("/jib:worker"), HasSubstr("accepted")));
  EXPECT_THAT(std::string(DeviceFilters::Parse({""}).status().message()),
              AllOf(HasSubstr("device_filters [0]"), HasSubstr("accepted")));
}

TEST(DeviceFiltersTest, AsText) {
  EXPECT_EQ(DeviceFilters::Parse({"job:ps", "/task:1/job:worker"})->ToString(), "[/job:ps, /job:worker/task:1]");
}

}  // namespace
}  // namespace muster::device_filters_test
