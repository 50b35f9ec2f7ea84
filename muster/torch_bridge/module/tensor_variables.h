// Finds the variables among a model's named tensors; tied weights count as one variable. Reads the tensors and changes
// nothing. Thread safety: that of the tensors.
#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/cluster/placement/variable_spec.h"
#include "muster/torch_bridge/module/model_tensors.h"

namespace muster {

struct TensorVariable {
  VariableSpec spec;                 // under its first name
  std::vector<std::string> aliases;  // its further names, in order
  // The distinct tensors behind the names: one, unless weights were tied by pointing two tensors at the same memory
  // (a.set_data(b)). Then each of them has a gradient of its own.
  std::vector<torch::Tensor> tensors;
};

// Returns the parameters, then the buffers, each in its order. Tensors with the same memory, shape and strides are one
// variable, trainable if any of them is. InvalidArgument, naming the tensors: a tensor that isn't made yet, a name that
// is there twice, memory shared only in part, element types that variables can't have, memory that isn't the CPU's,
// sparse parameters, parameters that aren't leaves.
absl::StatusOr<std::vector<TensorVariable>> FindTensorVariables(const ModelTensors& model);

}  // namespace muster
