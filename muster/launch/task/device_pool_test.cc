#include "muster/launch/task/device_pool.h"

#include <gmock/gmock.h>

namespace muster::device_pool_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::Pair;

constexpr char kCuda[] = "CUDA_VISIBLE_DEVICES";
constexpr char kHip[] = "HIP_VISIBLE_DEVICES";
constexpr char kRocr[] = "ROCR_VISIBLE_DEVICES";

// Returns what a task with CUDA_VISIBLE_DEVICES=`wanted` gets on a host with this environment.
NamedValues Given(const std::string& wanted, const std::vector<std::string>& host) {
  NamedValues environment = {{"A", "1"}, {kCuda, wanted}};
  EXPECT_EQ(GiveDevices(DevicePoolIn(host), environment), absl::OkStatus());
  EXPECT_EQ(environment.at(0).first, "A");
  environment.erase(environment.begin());
  return environment;
}

std::string WhyNot(const std::string& wanted, const std::vector<std::string>& host) {
  NamedValues environment = {{kCuda, wanted}};
  return std::string(GiveDevices(DevicePoolIn(host), environment).message());
}

TEST(DevicePoolTest, PlacesBecomeThePoolsDevices) {
  EXPECT_THAT(Given("0,2", {"CUDA_VISIBLE_DEVICES=5,6,7"}), ElementsAre(Pair(kCuda, "5,7")));
  EXPECT_THAT(Given("1", {"CUDA_VISIBLE_DEVICES=GPU-8a5f,MIG-91c2, GPU-0b1d"}), ElementsAre(Pair(kCuda, "MIG-91c2")));
  EXPECT_THAT(Given("0,2", {"XCUDA_VISIBLE_DEVICES=5"}), ElementsAre(Pair(kCuda, "0,2")));
}

// A number in CUDA_VISIBLE_DEVICES would be taken for one among those that ROCR_VISIBLE_DEVICES leaves.
TEST(DevicePoolTest, AmdsVariablesAreAPoolAsWell) {
  EXPECT_THAT(Given("1", {"ROCR_VISIBLE_DEVICES=4,GPU-5a"}), ElementsAre(Pair(kRocr, "GPU-5a")));
  EXPECT_THAT(Given("0,1", {"HIP_VISIBLE_DEVICES=2,3,4"}), ElementsAre(Pair(kHip, "2,3")));
}

TEST(DevicePoolTest, OfSeveralVariablesThoseThatCountAmongTheOthersDevicesAreDivided) {
  EXPECT_THAT(Given("1", {"ROCR_VISIBLE_DEVICES=4,5", "HIP_VISIBLE_DEVICES=0,1"}), ElementsAre(Pair(kHip, "1")));
  EXPECT_THAT(Given("1", {"ROCR_VISIBLE_DEVICES=2,3", "CUDA_VISIBLE_DEVICES=2,3"}), ElementsAre(Pair(kCuda, "3")));
  EXPECT_THAT(Given("1", {"HIP_VISIBLE_DEVICES=0,1", "CUDA_VISIBLE_DEVICES=0,1"}),
              ElementsAre(Pair(kCuda, "1"), Pair(kHip, "1")));
}

TEST(DevicePoolTest, ATaskWithoutGpusSeesNone) {
  EXPECT_THAT(Given("", {"CUDA_VISIBLE_DEVICES=5,6"}), ElementsAre(Pair(kCuda, "")));
  EXPECT_THAT(Given("", {"ROCR_VISIBLE_DEVICES=5,6"}), ElementsAre(Pair(kRocr, "")));
  EXPECT_THAT(Given("", {"HIP_VISIBLE_DEVICES=5,6"}), ElementsAre(Pair(kHip, "-1"))) << "empty would be all";
}

TEST(DevicePoolTest, WhatNamesNoPlacesStays) {
  EXPECT_THAT(Given("GPU-8a5f", {"CUDA_VISIBLE_DEVICES=5,6"}), ElementsAre(Pair(kCuda, "GPU-8a5f")));
  NamedValues none;
  EXPECT_EQ(GiveDevices(DevicePoolIn({"CUDA_VISIBLE_DEVICES=5"}), none), absl::OkStatus());
  EXPECT_THAT(none, IsEmpty()) << "nobody has GPUs of its own";
}

TEST(DevicePoolTest, APoolThatIsTooSmallIsNamed) {
  EXPECT_THAT(WhyNot("1", {"CUDA_VISIBLE_DEVICES=7"}),
              AllOf(HasSubstr("CUDA_VISIBLE_DEVICES is '7', which has 1"), HasSubstr("2 or more")));
  EXPECT_THAT(WhyNot("0", {"ROCR_VISIBLE_DEVICES="}), HasSubstr("ROCR_VISIBLE_DEVICES is '', which has 0"));
}

}  // namespace
}  // namespace muster::device_pool_test
