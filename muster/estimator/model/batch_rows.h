// Views of a batch's tensors that metrics, heads and columns share: as rows of columns, weighed by a feature. Pure;
// throws Error (InvalidArgument) for shapes that don't fit. Thread-safe.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>

#include "muster/estimator/model/minibatch.h"

namespace muster {

// "[32, 3]", for messages.
std::string ShapeText(const torch::Tensor& tensor);

// Returns [batch, n] for [batch] (n is 1) or for anything with more dimensions (n is their product); a view if
// possible. Refuses a scalar. `what` names the tensor in the message: "feature 'x'".
torch::Tensor AsColumns(const torch::Tensor& tensor, const std::string& what);

// Returns the weight of each of `rows` rows, [rows, 1], float64, on the CPU or where the feature is: that feature,
// [rows] or [rows, 1] of any type; ones on the CPU if `feature` is empty.
torch::Tensor RowWeights(const Minibatch& minibatch, const std::string& feature, int64_t rows);

// Throws Error (InvalidArgument).
[[noreturn]] void RefuseBatch(const std::string& message);

}  // namespace muster
