#include "muster/torch_bridge/module/module_devices.h"

#include "muster/torch_bridge/module/torch_dtype.h"
#include "muster/train/threads/error.h"

namespace muster {

void ModuleDevices::PlaceTensor(const std::string& name, const torch::Tensor& tensor) {
  const void* key = tensor.unsafeGetTensorImpl();
  if (devices_.contains(key)) return;
  const auto device = scopes_.DeviceFor({.name = name,
                                         .dtype = DTypeFromTorch(tensor.scalar_type()).value_or(DType::kFloat32),
                                         .shape = tensor.sizes().vec()});
  ThrowIfError(device.status());
  devices_.emplace(key, std::pair(tensor, device->ToString()));
}

void ModuleDevices::Place(const torch::nn::Module& module) {
  for (const auto& item : module.named_parameters()) PlaceTensor(item.key(), item.value());
  for (const auto& item : module.named_buffers()) PlaceTensor(item.key(), item.value());
}

absl::flat_hash_map<std::string, std::string> ModuleDevices::Of(const torch::nn::Module& module) const {
  absl::flat_hash_map<std::string, std::string> names;
  const auto look = [&](const std::string& name, const torch::Tensor& tensor) {
    const auto found = devices_.find(tensor.unsafeGetTensorImpl());
    if (found != devices_.end()) names[name] = found->second.second;
  };
  for (const auto& item : module.named_parameters()) look(item.key(), item.value());
  for (const auto& item : module.named_buffers()) look(item.key(), item.value());
  return names;
}

}  // namespace muster
