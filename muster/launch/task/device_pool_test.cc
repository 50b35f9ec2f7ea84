#include "muster/launch/task/device_pool.h"

#include <gmock/gmock.h>

namespace muster::device_pool_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr;

TEST(DevicePoolTest, PlacesBecomeThePoolsDevices) {
  EXPECT_EQ(DevicesFromPool("0,2", "5,6,7").value(), "5,7");
  EXPECT_EQ(DevicesFromPool("1", "GPU-8a5f,MIG-91c2, GPU-0b1d").value(), "MIG-91c2");
  EXPECT_EQ(DevicesFromPool("0,2", std::nullopt).value(), "0,2");
}

TEST(DevicePoolTest, WhatNamesNoPlacesStays) {
  EXPECT_EQ(DevicesFromPool("", "5,6").value(), "") << "a task without GPUs";
  EXPECT_EQ(DevicesFromPool("GPU-8a5f", "5,6").value(), "GPU-8a5f") << "the user's own choice";
}

TEST(DevicePoolTest, APoolThatIsTooSmallIsNamed) {
  EXPECT_THAT(DevicesFromPool("1", "7").status().message(),
              AllOf(HasSubstr("CUDA_VISIBLE_DEVICES is '7', which has 1"), HasSubstr("2 or more")));
  EXPECT_THAT(DevicesFromPool("0", "").status().message(), HasSubstr("is '', which has 0"));
}

}  // namespace
}  // namespace muster::device_pool_test
