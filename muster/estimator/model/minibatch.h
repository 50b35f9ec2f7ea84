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
  torch::Tensor labels;  // undefined where there are none (Predict)

  int64_t size() const;  // rows of the first feature; 0: there is none
  // On the device that the model computes on; itself, if it is there.
  Minibatch To(const torch::Device& device) const;
};

// The feature of that name. Throws Error (InvalidArgument) naming those that there are.
const torch::Tensor& FeatureOf(const Minibatch& minibatch, const std::string& name);

// Tensors that share the memory of `example`, which they keep; it is given back to be filled again when the last of
// them is gone.
Minibatch MinibatchOf(std::shared_ptr<Example> example);
// For Map functions that would rather work on tensors: both copy. ArrayOf takes tensors of any device, and throws Error
// (InvalidArgument): a type that arrays can't have (complex, quantized).
torch::Tensor TensorOf(const Array& array);
Array ArrayOf(const torch::Tensor& tensor);

}  // namespace muster
