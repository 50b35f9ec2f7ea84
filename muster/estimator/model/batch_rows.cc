#include "muster/estimator/model/batch_rows.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/train/threads/error.h"

namespace muster {

std::string ShapeText(const torch::Tensor& tensor) {
  return absl::StrCat("[", absl::StrJoin(tensor.sizes(), ", "), "]");
}

torch::Tensor AsColumns(const torch::Tensor& tensor, const std::string& what) {
  if (!tensor.defined() || tensor.dim() == 0)
    RefuseBatch(absl::StrCat(what, tensor.defined() ? " is a scalar" : " is no tensor",
                             "; accepted: a tensor whose first dimension is the batch"));
  return tensor.dim() == 1 ? tensor.unsqueeze(1) : tensor.flatten(1);
}

torch::Tensor RowWeights(const Minibatch& minibatch, const std::string& feature, int64_t rows) {
  if (feature.empty()) return torch::ones({rows, 1}, torch::kFloat64);
  const torch::Tensor& given = FeatureOf(minibatch, feature);
  const torch::Tensor weights = AsColumns(given, absl::StrCat("the weights' feature '", feature, "'"));
  if (weights.size(0) != rows || weights.size(1) != 1)
    RefuseBatch(absl::StrCat("the weights' feature '", feature, "' has the shape ", ShapeText(given), "; accepted: [",
                             rows, "] or [", rows, ", 1], a number a row"));
  return weights.detach().to(torch::kFloat64);
}

void RefuseBatch(const std::string& message) { throw Error(absl::InvalidArgumentError(message)); }

}  // namespace muster
