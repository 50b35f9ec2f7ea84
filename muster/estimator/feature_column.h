// Which of a batch's features go into a canned model, and as how many numbers. Numeric columns only:
// tf.feature_column.numeric_column, contrib's real_valued_column. Plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "muster/estimator/minibatch.h"

namespace muster {

struct FeatureColumn {
  std::string name;       // of the feature
  int64_t dimension = 1;  // numbers a row: the feature is [batch, dimension], or [batch] for 1
  // Applied to the feature first; empty: nothing is.
  std::function<torch::Tensor(const torch::Tensor&)> normalizer;
};
FeatureColumn NumericColumn(std::string name, int64_t dimension = 1,
                            std::function<torch::Tensor(const torch::Tensor&)> normalizer = {});
// The same, by its older name.
FeatureColumn RealValuedColumn(std::string name, int64_t dimension = 1);

// InvalidArgument: none, a name twice, a dimension below 1.
[[nodiscard]] absl::Status CheckColumns(const std::vector<FeatureColumn>& columns);
// All columns' numbers as [batch, sum of dimensions], float32, in order of their names as TensorFlow's input layer has
// them. Throws Error: a feature that isn't there or has another width (name and both).
torch::Tensor InputLayer(const Minibatch& minibatch, const std::vector<FeatureColumn>& columns);

}  // namespace muster
