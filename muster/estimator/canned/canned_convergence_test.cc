// Linear classifiers trained to convergence, compared with scikit-learn's results on the same rows
// (tests/data/canned_models/README.md).
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "muster/base/testing/built_at.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/estimator/canned/canned.h"
#include "muster/estimator/distributed/train_and_evaluate.h"

namespace muster::canned_convergence_test {
namespace {

using nlohmann::json;

constexpr int64_t kSteps = 500;

json Recorded(const std::string& name) {
  std::ifstream file(SourceFolder() + "/tests/data/canned_models/logistic_regression.json");
  const json recorded = json::parse(file);
  for (json test : recorded.at("cases")) {
    if (test.at("name") != name) continue;
    test["l2"] = recorded.at("l2");
    return test;
  }
  ADD_FAILURE() << name << " isn't recorded";
  return {};
}

// [rows, columns] as one row after the other.
std::vector<float> Flat(const json& rows) {
  std::vector<float> values;
  for (const json& row : rows)
    for (const json& value : row) values.push_back(value.get<float>());
  return values;
}

torch::Tensor Row(const json& values) { return torch::tensor(values.get<std::vector<float>>()); }

// All rows as one batch.
InputFn Rows(const json& recorded, bool repeated) {
  const auto labels = recorded.at("labels").get<std::vector<int64_t>>();
  const auto count = static_cast<int64_t>(labels.size());
  Example rows;
  rows.features.push_back({"iris", Array::Of<float>({count, 4}, Flat(recorded.at("features")))});
  rows.labels = Array::Of<int64_t>({count}, labels);
  rows.has_labels = true;
  return [rows, count, repeated](const InputContext&) {
    const Dataset batches = Dataset::FromMemory(rows).Batch(static_cast<size_t>(count));
    return repeated ? batches.Repeat() : batches;
  };
}

class CannedConvergenceTest : public ::testing::Test {
 protected:
  // `rule` has no decay; the weights get scikit-learn's, the bias none.
  void TrainAndCompare(const json& recorded, int64_t classes, const RuleSpec& rule) {
    RuleSpec decaying = rule;
    decaying.weight_decay = recorded.at("l2");
    const torch::Tensor mean = Row(recorded.at("mean"));
    const torch::Tensor deviation = Row(recorded.at("deviation"));
    LinearClassifier model(
        {.feature_columns = {NumericColumn("iris", 4, [=](const torch::Tensor& x) { return (x - mean) / deviation; })},
         .n_classes = classes,
         .optimizer = OptimizerSpec(decaying, {{.variables = {"linear.bias"}, .rule = rule}})},
        {.model_dir = directory_.path(), .save_summary_steps = 0, .save_checkpoints_secs = 0, .task = TaskConfig{}});
    model.Train(Rows(recorded, true), {.max_steps = kSteps});

    const torch::Tensor weights = torch::tensor(Flat(recorded.at("weights"))).view({-1, 4});
    EXPECT_LE((model.VariableValue("linear.iris.weight") - weights).abs().max().item<double>(), 1e-3);
    EXPECT_LE((model.VariableValue("linear.bias") - Row(recorded.at("bias"))).abs().max().item<double>(), 1e-3);
    EXPECT_GT(weights.abs().min().item<double>(), 0.1) << "nothing was compared";

    const EvalResults results = model.Evaluate(Rows(recorded, false));
    EXPECT_NEAR(results.at("accuracy"), recorded.at("accuracy").get<double>(), 1e-6);
    EXPECT_NEAR(results.at("average_loss"), recorded.at("average_loss").get<double>(), 1e-3);
    EXPECT_NEAR(results.at("loss"), results.at("average_loss"), 1e-5);  // one batch
    EXPECT_EQ(results.at("global_step"), kSteps);
  }

  const ScratchFolder directory_;
};

TEST_F(CannedConvergenceTest, TwoClassesByFtrl) {
  TrainAndCompare(Recorded("versicolor_or_virginica"), 2, Ftrl({.learning_rate = 2}));
}

TEST_F(CannedConvergenceTest, TwoClassesByMomentum) {
  TrainAndCompare(Recorded("versicolor_or_virginica"), 2, Momentum({.learning_rate = 0.5}));
}

// Nothing penalises the biases: their sum stays zero only under a rule that treats all weights alike.
TEST_F(CannedConvergenceTest, ThreeClassesByMomentum) {
  TrainAndCompare(Recorded("three_classes"), 3, Momentum({.learning_rate = 0.5}));
}

// The program of docs/canned_models.md.
TEST_F(CannedConvergenceTest, ADenseNetworkLearnsTheIrises) {
  const json recorded = Recorded("three_classes");
  const InputFn training = Rows(recorded, true);
  const InputFn evaluation = Rows(recorded, false);
  const RunConfig config = {.model_dir = directory_.path(), .seed = 1, .task = TaskConfig{}};
  // [program]
  DNNClassifier model({.hidden_units = {16, 8}, .feature_columns = {NumericColumn("iris", 4)}, .n_classes = 3}, config);
  model.Train(training, {.max_steps = 500});
  const EvalResults results = model.Evaluate(evaluation);  // accuracy, average_loss, loss, global_step
  int64_t predicted = 0;
  model.Predict(evaluation, [&](const Tensors& row) { predicted += row.at("probabilities").argmax().item<int64_t>(); });
  // [/program]
  EXPECT_GT(results.at("accuracy"), 0.93);
  // The classes are 0, 1 and 2, 50 rows of each.
  EXPECT_NEAR(static_cast<double>(predicted), 150, 15);
}

// The program of README.md.
TEST_F(CannedConvergenceTest, ADenseNetworkIsTrainedAndEvaluatedByOneCall) {
  const json recorded = Recorded("three_classes");
  const muster::InputFn training = Rows(recorded, true);
  const muster::InputFn evaluation = Rows(recorded, false);
  const std::string model_dir = directory_.path();
  // [train-and-evaluate]
  muster::DnnOptions options{
      .hidden_units = {16, 8}, .feature_columns = {muster::NumericColumn("iris", 4)}, .n_classes = 3};
  muster::DNNClassifier model(options, {.model_dir = model_dir, .seed = 1});
  auto results = muster::TrainAndEvaluate(model, {.input_fn = training, .max_steps = 1000}, {.input_fn = evaluation});
  // [/train-and-evaluate]
  EXPECT_GT(results.eval.at("accuracy"), 0.93);
  EXPECT_EQ(results.eval.at("global_step"), 1000);
}

}  // namespace
}  // namespace muster::canned_convergence_test
