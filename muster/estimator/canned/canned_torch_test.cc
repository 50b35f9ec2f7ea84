// Compares canned models in training with a loop over plain tensors, which knows nothing of modules, heads, optimizers
// or sessions: after each of 50 steps the loss and every value are the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/algo/algorithms/algorithm.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/estimator/canned/canned.h"

namespace muster::canned_torch_test {
namespace {

constexpr int64_t kSteps = 50;
constexpr int64_t kRows = 32;
constexpr int64_t kBatch = 8;
constexpr double kRate = 0.05;

// By name; [outputs, inputs] and [outputs].
using Values = std::map<std::string, torch::Tensor>;

struct Moment {
  double loss = 0;  // of the step before
  Values values;
};

// Records the model before the first step, and after each.
class Recorder final : public SessionHook {
 public:
  absl::Status AfterCreateSession(const SessionContext& context) override {
    moments.push_back({0, ValuesOf(*context.algorithm)});
    return absl::OkStatus();
  }
  absl::Status AfterRun(RunContext& context, const RunValues& run) override {
    moments.push_back({run.loss, ValuesOf(*context.session().algorithm)});
    return absl::OkStatus();
  }

  std::vector<Moment> moments;

 private:
  static Values ValuesOf(Algorithm& algorithm) {
    GradientSource& source = algorithm.source();
    Values values;
    for (size_t i = 0; i < source.variables().size(); ++i) {
      const VariableSpec& variable = source.variables()[i];
      values[variable.name] = torch::from_blob(source.value(i).data(), variable.shape, torch::kFloat32).clone();
    }
    return values;
  }
};

struct Data {
  torch::Tensor features;  // [rows, 4]
  torch::Tensor labels;    // [rows, 1]

  InputFn Input() const {
    Example rows;
    rows.features.push_back({"feature", Array::Of<float>(features.sizes().vec(), Span(features))});
    rows.labels = Array::Of<float>(labels.sizes().vec(), Span(labels));
    rows.has_labels = true;
    return [rows](const InputContext&) { return Dataset::FromMemory(rows).Batch(kBatch).Repeat(); };
  }
  torch::Tensor Features(int64_t step) const { return features.slice(0, First(step), First(step) + kBatch); }
  torch::Tensor Labels(int64_t step) const { return labels.slice(0, First(step), First(step) + kBatch); }

 private:
  static int64_t First(int64_t step) { return step * kBatch % kRows; }
  static std::span<const float> Span(const torch::Tensor& tensor) {
    return {tensor.const_data_ptr<float>(), static_cast<size_t>(tensor.numel())};
  }
};

// Makes labels 0 … classes − 1, or numbers if `classes` is 0.
Data MakeData(int64_t classes) {
  torch::manual_seed(11);
  const torch::Tensor features = torch::randn({kRows, 4});
  const torch::Tensor numbers = features.sum(1, true) + torch::randn({kRows, 1}) / 4;
  if (classes == 0) return {features, numbers};
  return {features, numbers.floor().clamp(0, static_cast<double>(classes - 1))};
}

torch::Tensor Relu(const torch::Tensor& x) { return x * (x > 0).to(torch::kFloat32); }

torch::Tensor Layer(const Values& values, const std::string& name, const torch::Tensor& x) {
  return x.mm(values.at(name + ".weight").t()) + values.at(name + ".bias");
}

torch::Tensor DenseLogits(const Values& values, const torch::Tensor& features) {
  const torch::Tensor first = Relu(Layer(values, "dnn.hiddenlayer_0", features));
  return Layer(values, "dnn.logits", Relu(Layer(values, "dnn.hiddenlayer_1", first)));
}

torch::Tensor LinearLogits(const Values& values, const torch::Tensor& features) {
  return features.mm(values.at("linear.feature.weight").t()) + values.at("linear.bias");
}

torch::Tensor SquaredError(const torch::Tensor& logits, const torch::Tensor& labels) {
  return (logits - labels).pow(2).sum() / kBatch;
}
torch::Tensor Logistic(const torch::Tensor& logits, const torch::Tensor& labels) {
  return ((1 + logits.exp()).log() - labels * logits).sum() / kBatch;
}
torch::Tensor Softmax(const torch::Tensor& logits, const torch::Tensor& labels) {
  const torch::Tensor probabilities = logits.exp() / logits.exp().sum(1, true);
  return -probabilities.gather(1, labels.to(torch::kInt64)).log().sum() / kBatch;
}

// Makes one step of Adagrad as in TensorFlow 1: a ← a + g², p ← p − η g / √a, where a is 0.1 at first.
void ApplyAdagrad(torch::Tensor& value, const torch::Tensor& gradient, Values& slots, const std::string& name) {
  torch::Tensor& sum = slots.try_emplace(name, torch::full_like(value, 0.1)).first->second;
  sum = sum + gradient * gradient;
  value = value - kRate * gradient / sum.sqrt();
}

// FTRL-proximal without penalties: z ← z + g − (√a′ − √a) / η p, p ← −z η / √a′.
void ApplyFtrl(torch::Tensor& value, const torch::Tensor& gradient, Values& slots, const std::string& name) {
  const double rate = 0.2;
  torch::Tensor& sum = slots.try_emplace(name, torch::full_like(value, 0.1)).first->second;
  torch::Tensor& linear = slots.try_emplace("linear " + name, torch::zeros_like(value)).first->second;
  const torch::Tensor next = sum + gradient * gradient;
  linear = linear + gradient - (next.sqrt() - sum.sqrt()) / rate * value;
  sum = next;
  value = -linear * rate / sum.sqrt();
}

struct Case {
  std::string name;
  std::function<std::unique_ptr<Estimator>(const RunConfig&)> model;
  int64_t classes = 0;
  torch::Tensor (*logits)(const Values&, const torch::Tensor&);
  torch::Tensor (*loss)(const torch::Tensor&, const torch::Tensor&);
  void (*apply)(torch::Tensor&, const torch::Tensor&, Values&, const std::string&);
};

std::vector<Moment> PlainTraining(const Case& test, const Data& data, const Values& initial) {
  Values values;
  for (const auto& [name, value] : initial) values[name] = value.clone();
  Values slots;
  std::vector<Moment> moments = {{0, initial}};
  for (int64_t step = 0; step < kSteps; ++step) {
    for (auto& [name, value] : values) value = value.detach().requires_grad_();
    const torch::Tensor loss = test.loss(test.logits(values, data.Features(step)), data.Labels(step));
    loss.backward();
    const torch::NoGradGuard no_grad;
    for (auto& [name, value] : values) test.apply(value, value.grad().clone(), slots, name);
    moments.push_back({loss.item<double>(), values});
  }
  return moments;
}

std::vector<Case> Cases() {
  const std::vector<FeatureColumn> columns = {RealValuedColumn("feature", 4)};
  const DnnOptions dense = {.hidden_units = {3, 3}, .feature_columns = columns};
  const LinearOptions linear = {.feature_columns = columns};
  DnnOptions dense_of_three = dense;
  dense_of_three.n_classes = 3;
  return {
      {"DNNRegressor", [=](const RunConfig& config) { return std::make_unique<DNNRegressor>(dense, config); }, 0,
       DenseLogits, SquaredError, ApplyAdagrad},
      {"DNNClassifier", [=](const RunConfig& config) { return std::make_unique<DNNClassifier>(dense, config); }, 2,
       DenseLogits, Logistic, ApplyAdagrad},
      {"DNNClassifierOfThree",
       [=](const RunConfig& config) { return std::make_unique<DNNClassifier>(dense_of_three, config); }, 3, DenseLogits,
       Softmax, ApplyAdagrad},
      {"LinearRegressor", [=](const RunConfig& config) { return std::make_unique<LinearRegressor>(linear, config); }, 0,
       LinearLogits, SquaredError, ApplyFtrl},
      {"LinearClassifier", [=](const RunConfig& config) { return std::make_unique<LinearClassifier>(linear, config); },
       2, LinearLogits, Logistic, ApplyFtrl},
  };
}

class CannedTorchTest : public ::testing::TestWithParam<Case> {};

TEST_P(CannedTorchTest, EqualsAPlainLoopStepByStep) {
  const ScratchFolder scratch;
  const Data data = MakeData(GetParam().classes);
  const auto recorder = std::make_shared<Recorder>();
  const auto model = GetParam().model({.model_dir = scratch.path(),
                                       .seed = 5,
                                       .save_summary_steps = 0,
                                       .save_checkpoints_secs = 0,
                                       .task = TaskConfig{}});
  model->Train(data.Input(), {.hooks = {recorder}, .steps = kSteps});

  ASSERT_EQ(recorder->moments.size(), static_cast<size_t>(kSteps) + 1);
  const std::vector<Moment> expected = PlainTraining(GetParam(), data, recorder->moments[0].values);
  for (int64_t step = 1; step <= kSteps; ++step) {
    const Moment& ours = recorder->moments[step];
    EXPECT_NEAR(ours.loss, expected[step].loss, 1e-5 * std::max(1., expected[step].loss)) << "step " << step;
    ASSERT_EQ(ours.values.size(), expected[step].values.size());
    for (const auto& [name, value] : ours.values) {
      const torch::Tensor difference = value - expected[step].values.at(name).detach();
      EXPECT_LE(difference.abs().max().item<double>(), 1e-5) << name << " after step " << step;
    }
  }
  static_assert((kSteps - 2) * kBatch % kRows == 0);  // the batch of the first step again
  EXPECT_LT(expected[kSteps - 1].loss, expected[1].loss) << "nothing was learnt";
  // The checkpoint has the last values.
  for (const auto& [name, value] : recorder->moments[kSteps].values)
    EXPECT_TRUE(torch::equal(model->VariableValue(name), value)) << name;
}

INSTANTIATE_TEST_SUITE_P(All, CannedTorchTest, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace muster::canned_torch_test
