// For tests of code on top of an Estimator: a model of one weight and one bias that learns a straight line from eight
// points, in a folder of its own.
#pragma once

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "muster/base/testing/scratch_folder.h"
#include "muster/estimator/estimator.h"
#include "muster/optim/rule_options.h"

namespace muster {

inline Dataset LinePoints() {
  std::vector<float> x, y;
  for (int i = 0; i < 8; ++i) {
    x.push_back(static_cast<float>(i) / 8);
    y.push_back(2 * x.back() + 1);
  }
  Example rows;
  rows.features.push_back({"x", Array::Of<float>({8, 1}, x)});
  rows.labels = Array::Of<float>({8, 1}, y);
  rows.has_labels = true;
  return Dataset::FromMemory(std::move(rows)).Batch(8);
}

inline Dataset LineForEver(const InputContext&) { return LinePoints().Repeat(); }
inline Dataset LineOnce(const InputContext&) { return LinePoints(); }

inline EstimatorSpec LineModel(const ModelContext&) {
  torch::nn::Linear line(1, 1);
  EstimatorSpec spec;
  spec.module = line.ptr();
  spec.forward = [line](const Minibatch& batch) mutable {
    ModelOutputs outputs{.predictions = {{"predictions", line->forward(FeatureOf(batch, "x"))}}};
    if (batch.labels.defined()) outputs.loss = torch::mse_loss(outputs.predictions.at("predictions"), batch.labels);
    return outputs;
  };
  spec.optimizer = Sgd({.learning_rate = 0.1});
  spec.export_outputs = {{"serving_default", {.method = "predict", .predictions = {"predictions"}}}};
  return spec;
}

// Its inputs in an export.
inline ExportInputs LineInputs() { return {{"x", {.dtype = DType::kFloat32, .shape = {1}}}}; }

class ModelDirectory : public ScratchFolder {
 public:
  // A config for a process without a cluster, with checkpoints at the beginning and the end of a training, unless
  // `save_steps` asks for more.
  RunConfig Config(int64_t save_steps = 0) const {
    return {.model_dir = path(), .seed = 1, .save_checkpoints_steps = save_steps, .task = TaskConfig()};
  }
};

}  // namespace muster
