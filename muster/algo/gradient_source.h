// Where gradients come from, as the algorithms see it: a model whose variables live in plain memory and that can
// compute one minibatch. torch_bridge implements it for torch modules; tests implement it in ten lines. Not
// thread-safe: used by the training thread only.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/bytes.h"
#include "muster/cluster/variable_spec.h"

namespace muster {

class GradientSource {
 public:
  virtual ~GradientSource() = default;

  // In order of creation; fixed for the source's life. Aliases (tied weights) appear once, under the first name.
  virtual const std::vector<VariableSpec>& variables() const = 0;

  // The memory of variable i, variables()[i].bytes() long, row-major. Pulls write here; the address never changes.
  virtual MutableByteSpan value(size_t i) = 0;

  // Runs forward and backward for one minibatch and returns the loss. Errors: what the user's function threw.
  virtual absl::StatusOr<double> ComputeGradients() = 0;

  // The gradient of variable i, same type and size as value(i), valid until the next ComputeGradients; empty if the
  // variable isn't trainable or had no part in the last minibatch.
  virtual ByteSpan gradient(size_t i) = 0;
};

}  // namespace muster
