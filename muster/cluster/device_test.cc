// recorded_tensorflow_test.cc compares the grammar with TensorFlow's.
#include "muster/cluster/device.h"

#include <gmock/gmock.h>

namespace muster::device_test {
namespace {

using ::testing::HasSubstr;

TEST(DeviceSpec, FieldsAreReadInAnyOrder) {
  const DeviceSpec expected{.job = "ps", .replica = 0, .task = 1, .device_type = "CPU", .device_index = 2};
  EXPECT_EQ(DeviceSpec::Parse("/job:ps/replica:0/task:1/device:CPU:2").value(), expected);
  EXPECT_EQ(DeviceSpec::Parse("cpu:2/task:1/job:ps/replica:0").value(), expected);
  EXPECT_EQ(expected.ToString(), "/job:ps/replica:0/task:1/device:CPU:2");
}

TEST(DeviceSpec, UnsetIndexIsAnyAndUnsetDeviceIsNothing) {
  EXPECT_EQ(DeviceSpec::Parse("gpu")->ToString(), "/device:GPU:*");
  EXPECT_EQ(DeviceSpec().ToString(), "");
}

TEST(DeviceSpec, TheInnerFieldWins) {
  const DeviceSpec outer = DeviceSpec::Parse("/job:ps/task:1/gpu:0").value();
  EXPECT_EQ(outer.MergedWith(DeviceSpec::Parse("/task:2").value()).ToString(), "/job:ps/task:2/device:GPU:0");
  EXPECT_EQ(outer.MergedWith(DeviceSpec::Parse("/cpu").value()).ToString(), "/job:ps/task:1/device:CPU:0");
  EXPECT_EQ(outer.MergedWith(DeviceSpec()), outer);
}

// TensorFlow reads numbers with Python's int() and accepts any text as a job.
TEST(DeviceSpec, IsStricterThanTensorFlowWithNumbersAndEmptyNames) {
  for (const char* text : {"/task:-1", "/task:+1", "/task: 1", "/task:1_0", "/cpu:-1", "/job:", "/device::0",
                           "/task:99999999999999999999"}) {
    const auto device = DeviceSpec::Parse(text);
    EXPECT_EQ(device.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(device.status().message()), HasSubstr("accepted")) << text;
  }
}

}  // namespace
}  // namespace muster::device_test
