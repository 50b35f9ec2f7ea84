#include "muster/estimator/model/minibatch.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/torch_bridge/module/torch_dtype.h"
#include "muster/train/threads/error.h"

namespace muster {
namespace {

torch::Tensor TensorOver(Array& array, const std::shared_ptr<Example>& owner) {
  const c10::ScalarType type = TorchDType(array.dtype());
  if (array.elements() == 0) return torch::empty(array.shape(), type);
  return torch::from_blob(
      array.data().data(), array.shape(), [owner](void*) {}, type);
}

}  // namespace

int64_t Minibatch::size() const {
  if (features.empty()) return 0;
  const torch::Tensor& first = features.begin()->second;
  return first.dim() > 0 ? first.size(0) : 0;
}

Minibatch Minibatch::To(const torch::Device& device) const {
  Minibatch there;
  for (const auto& [name, tensor] : features) there.features.emplace(name, tensor.to(device));
  if (labels.defined()) there.labels = labels.to(device);
  return there;
}

const torch::Tensor& FeatureOf(const Minibatch& minibatch, const std::string& name) {
  const auto found = minibatch.features.find(name);
  if (found != minibatch.features.end()) return found->second;
  const auto name_of = [](std::string* out, const auto& feature) { out->append(feature.first); };
  throw Error(absl::InvalidArgumentError(
      absl::StrCat("the batch has no feature '", name, "'; it has ",
                   minibatch.features.empty() ? "none" : absl::StrJoin(minibatch.features, ", ", name_of))));
}

Minibatch MinibatchOf(std::shared_ptr<Example> example) {
  Minibatch minibatch;
  for (Feature& feature : example->features)
    minibatch.features.emplace(feature.name, TensorOver(feature.value, example));
  if (example->has_labels) minibatch.labels = TensorOver(example->labels, example);
  return minibatch;
}

torch::Tensor TensorOf(const Array& array) {
  torch::Tensor tensor = torch::empty(array.shape(), TorchDType(array.dtype()));
  if (array.elements() > 0) std::memcpy(tensor.mutable_data_ptr(), array.data().data(), array.bytes());
  return tensor;
}

Array ArrayOf(const torch::Tensor& tensor) {
  const std::optional<DType> dtype = DTypeFromTorch(tensor.scalar_type());
  if (!dtype)
    throw Error(absl::InvalidArgumentError(absl::StrCat("a tensor of type ", c10::toString(tensor.scalar_type()),
                                                        " can't go through the input pipeline; accepted: float, "
                                                        "double, half, bfloat16, int32, int64, uint8, bool")));
  const torch::Tensor here = tensor.detach().to(torch::kCPU).contiguous();
  Array array;
  array.Reset(*dtype, here.sizes().vec());
  if (array.elements() > 0) std::memcpy(array.data().data(), here.const_data_ptr(), array.bytes());
  return array;
}

}  // namespace muster
