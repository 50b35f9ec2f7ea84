// For tests: a linear model of two numbers, its data in memory, and access to the Errors of calls.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "muster/base/testing/scratch_folder.h"
#include "muster/estimator/estimator.h"
#include "muster/optim/rule_options.h"
#include "muster/train/threads/error.h"

namespace muster {

inline constexpr int64_t kLinearRows = 6;

// "x" [6, 2], labels 3 x₀ − 2 x₁ + 1, [6, 1].
inline Example LinearRows() {
  const std::vector<float> x = {0, 1, 1, 0, -1, 2, 2, 2, 0.5, -1, -2, 0.25};
  std::vector<float> y;
  for (size_t i = 0; i < x.size(); i += 2) y.push_back(3 * x[i] - 2 * x[i + 1] + 1);
  Example rows;
  rows.features.push_back({"x", Array::Of({kLinearRows, 2}, x)});
  rows.labels = Array::Of({kLinearRows, 1}, y);
  rows.has_labels = true;
  return rows;
}

// Batches of 4 and 2, for ever.
inline Dataset LinearTrainInput(const InputContext&) { return Dataset::FromMemory(LinearRows()).Batch(4).Repeat(); }
// The same batches, once.
inline Dataset LinearEvalInput(const InputContext&) { return Dataset::FromMemory(LinearRows()).Batch(4); }

// [model-function]
inline EstimatorSpec LinearModelFn(const ModelContext& context) {
  torch::nn::Linear net(2, 1);
  EstimatorSpec spec;
  spec.module = net.ptr();
  spec.forward = [net](const Minibatch& batch) mutable {
    ModelOutputs outputs;
    outputs.predictions["value"] = net->forward(FeatureOf(batch, "x"));
    if (batch.labels.defined()) outputs.loss = torch::mse_loss(outputs.predictions["value"], batch.labels);
    return outputs;
  };
  const auto rate = context.params.find("rate");
  spec.optimizer = Sgd({.learning_rate = rate == context.params.end() ? 0.1 : std::stod(rate->second)});
  return spec;
}
// [/model-function]

// Returns the status of the Error that `call` throws; OK if it throws none.
inline absl::Status ThrownBy(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.status();
  }
  return absl::OkStatus();
}

inline std::string MessageOf(const std::function<void()>& call) { return std::string(ThrownBy(call).message()); }

// Weight and bias from the latest checkpoint.
inline std::vector<torch::Tensor> ValuesOf(const Estimator& estimator) {
  return {estimator.VariableValue("weight"), estimator.VariableValue("bias")};
}

inline bool Same(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  return torch::equal(a[0], b[0]) && torch::equal(a[1], b[1]);
}

inline constexpr uint64_t kLinearSeed = 11;

// Gives each test a model_dir of its own.
class LinearEstimatorTest : public ::testing::Test {
 protected:
  RunConfig Config() const { return {.model_dir = folder_.path(), .seed = kLinearSeed}; }
  Estimator Linear() const { return Estimator(LinearModelFn, Config()); }

  const ScratchFolder folder_;
};

}  // namespace muster
