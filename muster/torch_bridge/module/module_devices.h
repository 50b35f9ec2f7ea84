// Device scopes for torch modules: a DeviceScope places everything created inside it, as TensorFlow's tf.device places
// variables. torch's constructors know nothing of scopes, so the code that creates a module must announce it:
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

  // Asks the scopes open now for the device of each parameter and buffer of `module` that has none yet, in torch's
  // order. Returns its argument. Throws Error for a scope with a bad device string.
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

  // Returns the devices of the present variables of `module`, by name; those that were never announced have none.
  absl::flat_hash_map<std::string, std::string> Of(const torch::nn::Module& module) const;

 private:
  void Place(const torch::nn::Module& module);
  void PlaceTensor(const std::string& name, const torch::Tensor& tensor);

  const DeviceStack& scopes_;
  // Holds the tensors, because their addresses are the keys.
  absl::flat_hash_map<const void*, std::pair<torch::Tensor, std::string>> devices_;
};

}  // namespace muster
