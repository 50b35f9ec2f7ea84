// Estimators that need no model function: dense networks and linear models over numeric columns. TensorFlow's
// DNNClassifier, DNNRegressor, LinearClassifier, LinearRegressor: their layers, initial values, default optimizers and
// losses. Variables are named "dnn.hiddenlayer_0.weight", …, "dnn.logits.weight"; "linear.NAME.weight", "linear.bias".
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "muster/estimator/estimator.h"
#include "muster/estimator/feature_column.h"
#include "muster/estimator/head.h"
#include "muster/optim/rule_options.h"

namespace muster {

struct DnnOptions {
  std::vector<int64_t> hidden_units;
  std::vector<FeatureColumn> feature_columns;
  int64_t n_classes = 2;        // of a classifier
  int64_t label_dimension = 1;  // of a regressor
  std::string weight_feature;
  // Unset: Adagrad, learning rate 0.05 (TensorFlow's).
  std::optional<OptimizerSpec> optimizer;
  std::function<torch::Tensor(const torch::Tensor&)> activation;  // empty: ReLU
  double dropout = 0;
  std::optional<WarmStartSettings> warm_start_from;
};

class DNNClassifier : public Estimator {
 public:
  explicit DNNClassifier(const DnnOptions& options, RunConfig config = {});
};
class DNNRegressor : public Estimator {
 public:
  explicit DNNRegressor(const DnnOptions& options, RunConfig config = {});
};

struct LinearOptions {
  std::vector<FeatureColumn> feature_columns;
  int64_t n_classes = 2;
  int64_t label_dimension = 1;
  std::string weight_feature;
  // Unset: FTRL, learning rate min(0.2, 1/√columns) (TensorFlow's).
  std::optional<OptimizerSpec> optimizer;
  std::optional<WarmStartSettings> warm_start_from;
};

class LinearClassifier : public Estimator {
 public:
  explicit LinearClassifier(const LinearOptions& options, RunConfig config = {});
};
class LinearRegressor : public Estimator {
 public:
  explicit LinearRegressor(const LinearOptions& options, RunConfig config = {});
};

}  // namespace muster
