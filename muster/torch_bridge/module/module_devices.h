// Device scopes for torch modules: what is created inside a DeviceScope is placed by it, as variables are inside
// TensorFlow's tf.device. torch's constructors know nothing of scopes, so whoever creates a module says so:
//
//   DeviceStack scopes;
//   ModuleDevices devices(scopes);
//   DeviceScope on_ps(scopes, ReplicaDeviceSetter({.cluster = task.cluster()}));
//   hidden = register_module("hidden", devices.Created(torch::nn::Linear(784, 100)));
//   { DeviceScope there(scopes, "/job:ps/task:1"); output = register_module("output", devices.Created(...)); }
//   …
//   Replica replica(server, net, {.devices = devices.Of(*net)});
//
// Used by the one thread that builds the model.
#pragma once

#include <torch/torch.h>

#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "muster/cluster/placement/device_scope.h"

namespace muster {

class ModuleDevices {
 public:
  // `scopes` must outlive it.
  explicit ModuleDevices(const DeviceStack& scopes) : scopes_(scopes) {}

  // Asks the scopes open now for each parameter and buffer of `module` that isn't placed yet, in torch's order. Returns
  // its argument. Throws Error for a scope with a bad device string.
  template <typename Holder>
  requires requires(Holder holder) { holder.ptr(); }
  Holder Created(Holder module) {
    Place(*module);
    return module;
  }
  torch::Tensor Created(torch::Tensor tensor) {
    PlaceTensor("", tensor);
    return tensor;
  }

  // The devices of what `module` now consists of, by name; what was never announced has none.
  absl::flat_hash_map<std::string, std::string> Of(const torch::nn::Module& module) const;

 private:
  void Place(const torch::nn::Module& module);
  void PlaceTensor(const std::string& name, const torch::Tensor& tensor);

  const DeviceStack& scopes_;
  // The tensors are held: their addresses are the keys.
  absl::flat_hash_map<const void*, std::pair<torch::Tensor, std::string>> devices_;
};

}  // namespace muster
