// How metrics, heads and columns look at the tensors of a batch: as rows of columns, weighed by a feature. Pure; throws
// Error (InvalidArgument) for what doesn't fit. Thread-safe.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>

#include "muster/estimator/model/minibatch.h"

namespace muster {

// "[32, 3]", for messages.
std::string ShapeText(const torch::Tensor& tensor);

// [batch, n] of [batch] (n is 1) or of anything with more dimensions (n is their product); a view where there can be
// one. Refused: a scalar. `what` names the tensor in the message: "feature 'x'".
torch::Tensor AsColumns(const torch::Tensor& tensor, const std::string& what);

// What each of `rows` rows counts, [rows, 1], float64, on the CPU or where the feature is: that feature, [rows] or
// [rows, 1] of any type; ones on the CPU if `feature` is empty.
torch::Tensor RowWeights(const Minibatch& minibatch, const std::string& feature, int64_t rows);

// Throws Error (InvalidArgument).
[[noreturn]] void RefuseBatch(const std::string& message);

}  // namespace muster
