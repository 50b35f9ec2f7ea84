#include "muster/torch_bridge/module/module_devices.h"

#include <gtest/gtest.h>

#include "muster/cluster/placement/placement.h"
#include "muster/cluster/placement/replica_device_setter.h"
#include "muster/torch_bridge/module/module_source.h"
#include "muster/train/threads/error.h"

namespace muster::module_devices_test {
namespace {

struct TwoLayersImpl : torch::nn::Module {
  TwoLayersImpl(DeviceStack& scopes, ModuleDevices& devices) {
    DeviceScope on_ps(scopes, ReplicaDeviceSetter({.ps_tasks = 3}));
    first = register_module("first", devices.Created(torch::nn::Linear(2, 3)));
    DeviceScope there(scopes, "job:ps/task:2");
    second = register_module("second", devices.Created(torch::nn::Linear(3, 1)));
  }
  torch::nn::Linear first{nullptr}, second{nullptr};
};
TORCH_MODULE(TwoLayers);

TEST(ModuleDevicesTest, ScopesDecideWhatIsCreatedInside) {
  DeviceStack scopes;
  ModuleDevices devices(scopes);
  TwoLayers net(scopes, devices);
  const auto names = devices.Of(*net);
  EXPECT_EQ(names.at("first.weight"), "/job:ps/task:0");
  EXPECT_EQ(names.at("first.bias"), "/job:ps/task:1");
  EXPECT_EQ(names.at("second.weight"), "/job:ps/task:2");
  EXPECT_EQ(names.at("second.bias"), "/job:ps/task:2");

  auto source = ModuleSource::Create(net.ptr(), {.devices = names}).value();
  const auto placed = PlaceVariables(source->variables(), 3, Placement::kRoundRobin, {}).value();
  std::vector<int> ps;
  for (const PlacedSlice& slice : placed.slices) ps.push_back(slice.ps);
  EXPECT_EQ(ps, (std::vector<int>{0, 1, 2, 2}));
}

TEST(ModuleDevicesTest, NothingAnnouncedNothingPlaced) {
  DeviceStack scopes;
  ModuleDevices devices(scopes);
  torch::nn::Linear net(2, 2);
  EXPECT_TRUE(devices.Of(*net).empty());
}

TEST(ModuleDevicesTest, ABadDeviceStringIsAnError) {
  DeviceStack scopes;
  ModuleDevices devices(scopes);
  DeviceScope scope(scopes, "/jib:ps");
  EXPECT_THROW(devices.Created(torch::nn::Linear(2, 2)), Error);
}

}  // namespace
}  // namespace muster::module_devices_test
