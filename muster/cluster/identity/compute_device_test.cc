#include "muster/cluster/identity/compute_device.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "muster/base/wrong_configuration.h"

namespace muster::compute_device_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::Not;

constexpr ComputeDevice kGpu1{true, 1};

TEST(ComputeDeviceTest, TorchsAndTensorFlowsNames) {
  for (const char* cpu : {"cpu", "CPU", "cpu:0", "/cpu:0", "/CPU:*", "/device:CPU:0"})
    EXPECT_EQ(*ComputeDevice::Parse(cpu), ComputeDevice()) << cpu;
  for (const char* first : {"cuda", "gpu", "cuda:0", "gpu:0", "/gpu:0", "/gpu:*", "/device:GPU:0", "/device:gpu:0"})
    EXPECT_EQ(*ComputeDevice::Parse(first), (ComputeDevice{true, 0})) << first;
  for (const char* second : {"cuda:1", "CUDA:1", "gpu:1", "/gpu:1", "/device:GPU:1"})
    EXPECT_EQ(*ComputeDevice::Parse(second), kGpu1) << second;
  EXPECT_EQ(kGpu1.ToString(), "cuda:1");
  EXPECT_EQ(kGpu1.ToDevice(), "/device:GPU:1");
  EXPECT_EQ(ComputeDevice().ToString(), "cpu");
  EXPECT_EQ(ComputeDevice().ToDevice(), "/device:CPU:0");
}

TEST(ComputeDeviceTest, WhatIsNoDeviceIsNamedWithWhatIs) {
  for (const char* bad : {"", "/", "cuda:", "cuda:x", "cuda:-1", "cuda:1:2", "cuda1", "tpu:0", "/device:TPU:0", "cpu:1",
                          "/job:worker/task:0/gpu:0", "/task:0", "mps"}) {
    const auto parsed = ComputeDevice::Parse(bad);
    ASSERT_FALSE(parsed.ok()) << bad;
    EXPECT_TRUE(absl::IsInvalidArgument(parsed.status())) << bad;
    EXPECT_THAT(std::string(parsed.status().message()),
                AllOf(HasSubstr(absl::StrCat("\"", bad, "\"")), HasSubstr("accepted: cpu, cuda, cuda:N")));
  }
}

TEST(PlaceComputationTest, WhatIsThereIsTaken) {
  const auto placed = PlaceComputation(kGpu1, 2, "", /*soft=*/false).value();
  EXPECT_EQ(placed.device, kGpu1);
  EXPECT_EQ(placed.gpu, 1);
  EXPECT_THAT(placed.notice, IsEmpty());
  EXPECT_EQ(PlaceComputation({}, 2, "", false)->device, ComputeDevice());
}

TEST(PlaceComputationTest, SoftPlacementTakesTheCpuAndSaysSo) {
  const auto placed = PlaceComputation(kGpu1, 1, "", /*soft=*/true).value();
  EXPECT_EQ(placed.device, ComputeDevice());
  EXPECT_THAT(placed.notice, AllOf(HasSubstr("no device cuda:1"), HasSubstr("cpu, cuda:0"), HasSubstr("on the CPU")));
}

TEST(PlaceComputationTest, WithoutSoftPlacementTheErrorNamesWhatThereIs) {
  const absl::Status one = PlaceComputation(kGpu1, 1, "", /*soft=*/false).status();
  EXPECT_TRUE(absl::IsNotFound(one));
  EXPECT_TRUE(IsWrongConfiguration(one)) << "the same start again helps nobody";
  EXPECT_THAT(std::string(one.message()), AllOf(HasSubstr("no device cuda:1"), HasSubstr("there is: cpu, cuda:0."),
                                                HasSubstr("allow_soft_placement")));
  const absl::Status none = PlaceComputation({true, 0}, 0, "", false).status();
  EXPECT_THAT(std::string(none.message()), AllOf(HasSubstr("there is: cpu."), Not(HasSubstr("cpu, cuda"))));
}

TEST(PlaceComputationTest, TheListSaysWhichGpuIsMeant) {
  EXPECT_EQ(PlaceComputation({true, 0}, 4, "3,1", false)->gpu, 3);
  EXPECT_EQ(PlaceComputation(kGpu1, 4, "3,1", false)->gpu, 1);
  EXPECT_EQ(PlaceComputation(kGpu1, 4, "3,1", false)->device, kGpu1);
  // The host has four GPUs, the session two.
  EXPECT_TRUE(absl::IsNotFound(PlaceComputation({true, 2}, 4, "3,1", false).status()));
}

TEST(PlaceComputationTest, AListOfGpusThatAreNotThereIsNeverForgiven) {
  const absl::Status bad = PlaceComputation({}, 2, "0,2", /*soft=*/true).status();
  EXPECT_TRUE(absl::IsInvalidArgument(bad) && IsWrongConfiguration(bad));
  EXPECT_THAT(std::string(bad.message()), AllOf(HasSubstr("no GPU 2"), HasSubstr("0 to 1")));
  EXPECT_TRUE(PlaceComputation({}, 0, "0,2", /*soft=*/false).ok()) << "without a GPU the list means nothing";
}

TEST(GpuListTest, NumbersEachOnce) {
  EXPECT_THAT(*ParseGpuList(""), IsEmpty());
  EXPECT_THAT(*ParseGpuList("3, 1"), ElementsAre(3, 1));
  for (const char* bad : {",", "0,", "x", "-1", "0,0", "1.5", "99999999999"})
    EXPECT_THAT(std::string(ParseGpuList(bad).status().message()),
                AllOf(HasSubstr("visible_device_list"), HasSubstr("accepted")))
        << bad;
}

}  // namespace
}  // namespace muster::compute_device_test
