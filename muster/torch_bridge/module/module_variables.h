// Finds the variables of a torch module: its parameters and buffers under torch's dotted names; tied weights count as
// one variable. Reads the module and changes nothing. Thread safety: that of the module.
#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/cluster/placement/variable_spec.h"

namespace muster {

struct ModuleVariable {
  VariableSpec spec;                 // under its first name
  std::vector<std::string> aliases;  // its further names, in order
  // The distinct tensors behind the names: one, unless weights were tied by pointing two tensors at the same memory
  // (a.set_data(b)). Then each of them has a gradient of its own.
  std::vector<torch::Tensor> tensors;
};

// Returns named_parameters(), then named_buffers(), each in its order. Tensors with the same memory, shape and strides
// are one variable, trainable if any of them is. InvalidArgument, naming the tensors: memory shared only in part,
// element types that variables can't have, memory that isn't the CPU's, sparse parameters, parameters that aren't
// leaves.
absl::StatusOr<std::vector<ModuleVariable>> FindModuleVariables(const torch::nn::Module& module);

}  // namespace muster
