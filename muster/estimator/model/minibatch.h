// A batch as a model function sees it: tensors by name. Not thread-safe.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "muster/data/example.h"

namespace muster {

// By name; the first dimension is the batch.
using Tensors = std::map<std::string, torch::Tensor>;

struct Minibatch {
  Tensors features;
  torch::Tensor labels;  // undefined if there are none (Predict)

  int64_t size() const;  // rows of the first feature; 0 if there is none
  // Returns a copy on the device that the model computes on; the same tensors if they are there.
  Minibatch To(const torch::Device& device) const;
};

// Returns the feature of that name. Throws Error (InvalidArgument) naming the existing ones.
const torch::Tensor& FeatureOf(const Minibatch& minibatch, const std::string& name);

// Returns tensors that share the memory of `example` and keep it alive; when the last of them is gone, the example can
// be filled again.
Minibatch MinibatchOf(std::shared_ptr<Example> example);
// For Map functions that prefer tensors: both copy. ArrayOf takes tensors of any device, and throws Error
// (InvalidArgument) for a type that arrays can't have (complex, quantized).
torch::Tensor TensorOf(const Array& array);
Array ArrayOf(const torch::Tensor& tensor);

}  // namespace muster
