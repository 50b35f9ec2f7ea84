// recorded_tensorflow_test.cc compares nesting and the setter's rules with TensorFlow's.
#include "muster/cluster/placement/device_scope.h"

#include <gmock/gmock.h>

#include "muster/cluster/placement/replica_device_setter.h"

namespace muster::device_scope_test {
namespace {

using ::testing::HasSubstr;

std::string Device(const DeviceStack& stack, const OpSpec& op = {}) { return stack.DeviceFor(op).value().ToString(); }

TEST(DeviceScope, NestsAndEndsWithItsBlock) {
  DeviceStack stack;
  EXPECT_EQ(Device(stack), "");
  {
    DeviceScope outer(stack, "/job:ps/task:0/gpu:0");
    {
      DeviceScope inner(stack, "job:ps/task:1");
      EXPECT_EQ(Device(stack), "/job:ps/task:1/device:GPU:0");
      DeviceScope hidden(stack, DeviceFunction());
      EXPECT_EQ(Device(stack), "");
    }
    EXPECT_EQ(Device(stack), "/job:ps/task:0/device:GPU:0");
  }
  EXPECT_EQ(Device(stack), "");
}

TEST(DeviceScope, AFunctionSeesTheOpAndWhatTheScopesInsideMadeOfIt) {
  DeviceStack stack;
  std::string seen;
  DeviceScope scope(stack, [&seen](const OpSpec& op, const DeviceSpec& current) -> absl::StatusOr<DeviceSpec> {
    seen = op.name + " " + current.ToString();
    return DeviceSpec{.job = "elsewhere"};
  });
  DeviceScope inner(stack, "/task:3");
  EXPECT_EQ(Device(stack, VariableOp({.name = "w", .shape = {2}})), "/job:elsewhere");
  EXPECT_EQ(seen, "w /task:3");
}

TEST(DeviceScope, ABadStringIsReportedWhenSomethingIsPlaced) {
  DeviceStack stack;
  DeviceScope scope(stack, "/task:x");
  EXPECT_THAT(std::string(stack.DeviceFor({}).status().message()), HasSubstr("\"x\" is not a number"));
}

TEST(ReplicaDeviceSetter, PutsVariablesOnThePsInTurnAndTheRestOnTheWorker) {
  DeviceStack stack;
  DeviceScope scope(stack, ReplicaDeviceSetter({.ps_tasks = 2}));
  EXPECT_EQ(Device(stack), "/job:ps/task:0");
  EXPECT_EQ(Device(stack), "/job:ps/task:1");
  EXPECT_EQ(Device(stack, {.type = "MatMul"}), "/job:worker");
  EXPECT_EQ(Device(stack), "/job:ps/task:0");
}

TEST(ReplicaDeviceSetter, GreedyGoesByBytes) {
  DeviceStack stack;
  DeviceScope scope(stack,
                    ReplicaDeviceSetter({.ps_tasks = 2, .ps_strategy = GreedyLoadBalancingStrategy(2, ByteSizeLoad)}));
  const auto place = [&stack](const std::vector<int64_t>& shape) {
    return Device(stack, {.name = "v", .shape = shape});
  };
  EXPECT_EQ(place({10}), "/job:ps/task:0");
  EXPECT_EQ(place({4}), "/job:ps/task:1");
  EXPECT_EQ(place({6}), "/job:ps/task:1");
  EXPECT_EQ(place({}), "/job:ps/task:0");  // a tie at ten: the first
  EXPECT_EQ(place({}), "/job:ps/task:1");
  EXPECT_FALSE(stack.DeviceFor({.name = "v", .shape = {-1}}).ok());
}

TEST(ReplicaDeviceSetter, ACopyCountsOnWithTheOriginal) {
  const DeviceFunction setter = ReplicaDeviceSetter({.ps_tasks = 3});
  const DeviceFunction copy = setter;
  EXPECT_EQ(setter({}, {})->task, 0);
  EXPECT_EQ(copy({}, {})->task, 1);
}

TEST(ReplicaDeviceSetter, ABadDeviceIsReported) {
  DeviceStack stack;
  DeviceScope scope(stack, ReplicaDeviceSetter({.ps_tasks = 2, .worker_device = "nonsense"}));
  EXPECT_THAT(std::string(stack.DeviceFor({}).status().message()), HasSubstr("\"nonsense\""));
}

}  // namespace
}  // namespace muster::device_scope_test
