// Estimators that need no model function: dense networks and linear models over numeric columns. They keep the layers,
// initial values and default optimizers of TensorFlow's DNNClassifier, DNNRegressor, LinearClassifier, LinearRegressor
// (canned/dnn.py, canned/linear.py); docs/canned_models.md compares. Variables are named "dnn.hiddenlayer_0.weight",
// "dnn.hiddenlayer_0.bias", …, "dnn.logits.weight"; "linear.NAME.weight" for each column, "linear.bias". Used by one
// thread, like every Estimator.
//
// All constructors throw Error (IsWrongConfiguration) naming the option, its value and what is accepted.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "muster/estimator/canned/feature_column.h"
#include "muster/estimator/estimator.h"
#include "muster/optim/optimizer_spec.h"
#include "muster/optim/rule_options.h"

namespace muster {

struct DnnOptions {
  std::vector<int64_t> hidden_units;  // the size of each hidden layer, from the input on
  std::vector<FeatureColumn> feature_columns;
  int64_t n_classes = 2;        // for a classifier; 2: BinaryClassHead, more: MultiClassHead
  int64_t label_dimension = 1;  // for a regressor
  std::string weight_feature;   // see HeadOptions
  // Unset: Adagrad, learning rate 0.05, initial accumulator 0.1 (TensorFlow's).
  std::optional<OptimizerSpec> optimizer;
  // Applied after each hidden layer; empty: ReLU. With a function of your own an export has no program.
  std::function<torch::Tensor(const torch::Tensor&)> activation;
  double dropout = 0;  // the share of each hidden layer's outputs set to zero in a minibatch of training
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
  std::vector<FeatureColumn> feature_columns;  // names without dots, because variables are named by them
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
