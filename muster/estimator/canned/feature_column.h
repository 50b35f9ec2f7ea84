// Which of a batch's features go into a canned model, and as how many numbers. Numeric columns only:
// tf.feature_column.numeric_column, contrib's real_valued_column. Plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "muster/estimator/model/minibatch.h"

namespace muster {

struct FeatureColumn {
  std::string name;  // of the feature
  // Numbers a row: the feature is [batch, dimension], [batch] for 1, or has more dimensions, whose product it is.
  int64_t dimension = 1;
  // Applied to the feature first, before it becomes float32 (numeric_column's normalizer_fn); empty: nothing is.
  std::function<torch::Tensor(const torch::Tensor&)> normalizer;
};
FeatureColumn NumericColumn(std::string name, int64_t dimension = 1,
                            std::function<torch::Tensor(const torch::Tensor&)> normalizer = {});
// The same, by its older name.
FeatureColumn RealValuedColumn(std::string name, int64_t dimension = 1);

// InvalidArgument: none, one without a name, a name twice, a dimension below 1.
[[nodiscard]] absl::Status CheckColumns(const std::vector<FeatureColumn>& columns);
// The order that TensorFlow's input layer and linear model have them in.
std::vector<FeatureColumn> ColumnsByName(std::vector<FeatureColumn> columns);

// One column's numbers as [batch, dimension], float32. Throws Error: a feature that isn't there or has another width
// (name and both).
torch::Tensor ColumnOf(const Minibatch& minibatch, const FeatureColumn& column);
// All columns' beside each other, [batch, sum of dimensions], in order of their names.
torch::Tensor InputLayer(const Minibatch& minibatch, const std::vector<FeatureColumn>& columns);

}  // namespace muster
