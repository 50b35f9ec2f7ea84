#include "muster/estimator/canned/canned.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "muster/base/wrong_configuration.h"
#include "muster/train/threads/error.h"

namespace muster::canned_test {
namespace {

// For Estimators that train nothing.
RunConfig Config() { return {.model_dir = testing::TempDir() + "canned_test", .task = TaskConfig{}}; }

const std::vector<FeatureColumn> kColumns = {NumericColumn("width"), NumericColumn("area", 3)};

Minibatch Batch() {
  Minibatch minibatch;
  minibatch.features = {{"width", torch::tensor({1., -2., 0.5, 3.})},
                        {"area", torch::arange(12, torch::kInt64).view({4, 3}) - 5}};
  minibatch.labels = torch::tensor({1, 0, 0, 1}, torch::kInt64);
  return minibatch;
}

std::vector<std::string> VariablesOf(const torch::nn::Module& module) {
  std::vector<std::string> variables;
  for (const auto& parameter : module.named_parameters()) {
    std::string text = parameter.key();
    for (const int64_t extent : parameter.value().sizes()) text += " " + std::to_string(extent);
    variables.push_back(text);
  }
  std::ranges::sort(variables);
  return variables;
}

// Changes every variable from its initial value, so that leaving one out is noticed.
void Fill(torch::nn::Module& module) {
  torch::manual_seed(4);
  const torch::NoGradGuard no_grad;
  for (torch::Tensor& parameter : module.parameters()) parameter.normal_();
}

// Runs a program as an importer does: docs/export.md.
Tensors RunProgram(const EstimatorSpec& spec, Tensors known) {
  const auto variables = spec.module->named_parameters();
  for (const ExportStep& step : spec.export_program) {
    std::vector<torch::Tensor> inputs;
    for (const std::string& name : step.inputs) inputs.push_back(known.at(name));
    const auto argument = [&](const char* name) { return static_cast<int64_t>(step.arguments.at(name)); };
    const torch::Tensor& x = inputs.at(0);
    torch::Tensor& output = known[step.output];
    if (step.op == "unsqueeze") {
      output = x.unsqueeze(argument("dim"));
    } else if (step.op == "flatten") {
      output = x.flatten(argument("start_dim"));
    } else if (step.op == "to_float") {
      output = x.to(torch::kFloat32);
    } else if (step.op == "concat") {
      output = torch::cat(inputs, argument("dim"));
    } else if (step.op == "add") {
      output = inputs[0].clone();
      for (size_t i = 1; i < inputs.size(); ++i) output += inputs[i];
    } else if (step.op == "linear") {
      const auto bias = step.variables.find("bias");
      output = torch::linear(x, variables[step.variables.at("weight")],
                             bias == step.variables.end() ? torch::Tensor() : variables[bias->second]);
    } else if (step.op == "relu") {
      output = x.relu();
    } else if (step.op == "sigmoid") {
      output = x.sigmoid();
    } else if (step.op == "scale") {
      output = x * step.arguments.at("factor") + step.arguments.at("offset");
    } else if (step.op == "softmax") {
      output = x.softmax(argument("dim"));
    } else if (step.op == "argmax") {
      output = x.argmax(argument("dim"), argument("keepdim") != 0);
    } else if (step.op == "identity") {
      output = x;
    } else {
      ADD_FAILURE() << "no operation of docs/export.md: " << step.op;
    }
  }
  return known;
}

void ExpectProgramPredicts(const Estimator& model) {
  const EstimatorSpec spec = model.MakeSpec(Mode::kPredict);
  Fill(*spec.module);
  ASSERT_FALSE(spec.export_program.empty());
  const Tensors by_program = RunProgram(spec, Batch().features);
  const ModelOutputs outputs = spec.forward(Batch());
  EXPECT_GT(outputs.predictions.size(), 0u);
  for (const auto& [name, prediction] : outputs.predictions) {
    ASSERT_EQ(by_program.count(name), 1u) << name;
    EXPECT_TRUE(torch::allclose(by_program.at(name), prediction, 1e-5, 1e-6)) << name;
  }
}

std::string Refusal(const std::function<void()>& make) {
  try {
    make();
  } catch (const Error& error) {
    EXPECT_TRUE(IsWrongConfiguration(error.status())) << error.status();
    return error.what();
  }
  return "nothing was refused";
}

TEST(CannedTest, VariablesOfADenseNetwork) {
  const DNNClassifier model({.hidden_units = {5, 2}, .feature_columns = kColumns, .n_classes = 3}, Config());
  for (const Mode mode : {Mode::kTrain, Mode::kEval, Mode::kPredict})
    EXPECT_EQ(VariablesOf(*model.MakeSpec(mode).module),
              (std::vector<std::string>{"dnn.hiddenlayer_0.bias 5", "dnn.hiddenlayer_0.weight 5 4",
                                        "dnn.hiddenlayer_1.bias 2", "dnn.hiddenlayer_1.weight 2 5", "dnn.logits.bias 3",
                                        "dnn.logits.weight 3 2"}));
}

TEST(CannedTest, VariablesOfALinearModel) {
  const LinearRegressor model({.feature_columns = kColumns, .label_dimension = 2}, Config());
  const EstimatorSpec spec = model.MakeSpec(Mode::kTrain);
  EXPECT_EQ(VariablesOf(*spec.module),
            (std::vector<std::string>{"linear.area.weight 2 3", "linear.bias 2", "linear.width.weight 2 1"}));
  for (const torch::Tensor& parameter : spec.module->parameters()) EXPECT_EQ(parameter.abs().sum().item<double>(), 0);
}

TEST(CannedTest, DenseLayersBeginAsGlorotSays) {
  torch::manual_seed(1);
  const DNNRegressor model({.hidden_units = {200}, .feature_columns = {NumericColumn("x", 100)}}, Config());
  const auto variables = model.MakeSpec(Mode::kTrain).module->named_parameters();
  EXPECT_EQ(variables["dnn.hiddenlayer_0.bias"].abs().sum().item<double>(), 0);
  EXPECT_EQ(variables["dnn.logits.bias"].abs().sum().item<double>(), 0);
  const torch::Tensor kernel = variables["dnn.hiddenlayer_0.weight"].detach();
  const double limit = std::sqrt(6. / 300);
  EXPECT_LE(kernel.abs().max().item<double>(), limit);
  EXPECT_GT(kernel.abs().max().item<double>(), 0.99 * limit);
  EXPECT_NEAR(kernel.var().item<double>(), limit * limit / 3, 0.02 * limit * limit);
}

TEST(CannedTest, OptimizersAreTensorFlowsUnlessGiven) {
  const OptimizerSpec dense =
      DNNClassifier({.hidden_units = {2}, .feature_columns = kColumns}, Config()).MakeSpec(Mode::kTrain).optimizer;
  EXPECT_EQ(dense.rule.kind, RuleKind::kAdagrad);
  EXPECT_EQ(dense.rule.learning_rate, 0.05);
  EXPECT_EQ(dense.rule.initial_accumulator, 0.1);
  EXPECT_EQ(CheckOptimizer(dense, {}), absl::OkStatus());
  const auto rate_of = [](int columns) {
    LinearOptions options;
    for (int i = 0; i < columns; ++i) options.feature_columns.push_back(NumericColumn("x" + std::to_string(i)));
    const OptimizerSpec optimizer = LinearClassifier(options, Config()).MakeSpec(Mode::kTrain).optimizer;
    EXPECT_EQ(optimizer.rule, Ftrl({.learning_rate = optimizer.rule.learning_rate}));
    return optimizer.rule.learning_rate;
  };
  EXPECT_EQ(rate_of(1), 0.2);
  EXPECT_EQ(rate_of(100), 0.1);
  const LinearRegressor given({.feature_columns = kColumns, .optimizer = Adam({.learning_rate = 0.3})}, Config());
  EXPECT_EQ(given.MakeSpec(Mode::kTrain).optimizer, OptimizerSpec(Adam({.learning_rate = 0.3})));
}

TEST(CannedTest, AClassifierOfTwoClassesIsBinary) {
  const auto predictions_of = [](const Estimator& model) {
    return model.MakeSpec(Mode::kPredict).forward(Batch()).predictions;
  };
  const LinearClassifier two({.feature_columns = kColumns}, Config());
  EXPECT_EQ(predictions_of(two).at("logits").sizes(), (std::vector<int64_t>{4, 1}));
  const LinearClassifier four({.feature_columns = kColumns, .n_classes = 4}, Config());
  EXPECT_EQ(predictions_of(four).at("logits").sizes(), (std::vector<int64_t>{4, 4}));
  EXPECT_EQ(four.MakeSpec(Mode::kEval).eval_metrics.size(), 2u);
  EXPECT_EQ(two.MakeSpec(Mode::kEval).eval_metrics.size(), 9u);
}

TEST(CannedTest, TheWeightFeatureWeighsTheLoss) {
  LinearOptions options = {.feature_columns = {NumericColumn("width")}, .weight_feature = "weight"};
  Minibatch minibatch = Batch();
  minibatch.features["weight"] = torch::tensor({0., 0., 0., 2.});
  const EstimatorSpec spec = LinearRegressor(options, Config()).MakeSpec(Mode::kTrain);
  EXPECT_DOUBLE_EQ(spec.forward(minibatch).loss.item<double>(), 0.5);  // predictions of zero, 2 · 1² / 4
}

TEST(CannedTest, DropsOutInTrainingAlone) {
  const DnnOptions options = {.hidden_units = {64}, .feature_columns = kColumns, .dropout = 0.5};
  const DNNRegressor model(options, Config());
  // Both modes with the same values, run twice.
  const auto answers = [&](Mode mode) {
    const EstimatorSpec spec = model.MakeSpec(mode);
    Fill(*spec.module);
    std::vector<torch::Tensor> twice;
    for (int i = 0; i < 2; ++i) twice.push_back(spec.forward(Batch()).predictions.at("predictions").detach());
    return twice;
  };
  const auto trained = answers(Mode::kTrain);
  EXPECT_FALSE(torch::equal(trained[0], trained[1]));
  for (const Mode mode : {Mode::kEval, Mode::kPredict}) {
    const auto twice = answers(mode);
    EXPECT_TRUE(torch::equal(twice[0], twice[1]));
  }
}

TEST(CannedTest, AnActivationOfOnesOwn) {
  const DnnOptions options = {
      .hidden_units = {3}, .feature_columns = kColumns, .activation = [](const torch::Tensor& x) { return x.tanh(); }};
  const EstimatorSpec spec = DNNRegressor(options, Config()).MakeSpec(Mode::kPredict);
  Fill(*spec.module);
  const auto variables = spec.module->named_parameters();
  const torch::Tensor inputs = InputLayer(Batch(), kColumns);
  const torch::Tensor hidden =
      (inputs.matmul(variables["dnn.hiddenlayer_0.weight"].t()) + variables["dnn.hiddenlayer_0.bias"]).tanh();
  const torch::Tensor expected = hidden.matmul(variables["dnn.logits.weight"].t()) + variables["dnn.logits.bias"];
  EXPECT_TRUE(torch::allclose(spec.forward(Batch()).predictions.at("predictions"), expected, 1e-5, 1e-6));
  EXPECT_TRUE(spec.export_program.empty());
}

TEST(CannedTest, ExportProgramsPredictTheSame) {
  ExpectProgramPredicts(DNNClassifier({.hidden_units = {5, 2}, .feature_columns = kColumns}, Config()));
  ExpectProgramPredicts(
      DNNClassifier({.hidden_units = {5}, .feature_columns = {NumericColumn("area", 3)}, .n_classes = 3}, Config()));
  ExpectProgramPredicts(DNNRegressor({.feature_columns = kColumns, .label_dimension = 2}, Config()));
  ExpectProgramPredicts(LinearClassifier({.feature_columns = kColumns}, Config()));
  ExpectProgramPredicts(LinearRegressor({.feature_columns = {NumericColumn("width")}}, Config()));
}

TEST(CannedTest, ANormalizerIsInNoExportProgram) {
  const std::vector<FeatureColumn> columns = {NumericColumn("width", 1, [](const torch::Tensor& x) { return x / 2; })};
  EXPECT_TRUE(LinearClassifier({.feature_columns = columns}, Config()).MakeSpec(Mode::kPredict).export_program.empty());
  EXPECT_TRUE(DNNClassifier({.hidden_units = {2}, .feature_columns = columns}, Config())
                  .MakeSpec(Mode::kPredict)
                  .export_program.empty());
}

// A prediction neither needs labels nor looks at them.
TEST(CannedTest, LabelsWhereTheyAreNeeded) {
  const LinearClassifier model({.feature_columns = kColumns}, Config());
  Minibatch minibatch = Batch();
  minibatch.labels = torch::full({4}, 17, torch::kInt64);
  EXPECT_FALSE(model.MakeSpec(Mode::kPredict).forward(minibatch).loss.defined());
  minibatch.labels = torch::Tensor();
  EXPECT_FALSE(model.MakeSpec(Mode::kPredict).forward(minibatch).loss.defined());
  for (const Mode mode : {Mode::kTrain, Mode::kEval}) {
    try {
      model.MakeSpec(mode).forward(minibatch);
      ADD_FAILURE() << "a loss without labels";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("no labels"), std::string::npos) << error.what();
    }
  }
}

TEST(CannedTest, RefusesOptions) {
  const auto expect = [](const std::string& words, const std::function<void()>& make) {
    const std::string refusal = Refusal(make);
    EXPECT_NE(refusal.find(words), std::string::npos) << refusal;
  };
  expect("DNNClassifier: n_classes is 1; accepted: at least 2",
         [] { DNNClassifier({.feature_columns = kColumns, .n_classes = 1}, Config()); });
  expect("DNNRegressor: label_dimension is 0",
         [] { DNNRegressor({.feature_columns = kColumns, .label_dimension = 0}, Config()); });
  expect("DNNRegressor: hidden_units has 0", [] {
    DNNRegressor({.hidden_units = {3, 0}, .feature_columns = kColumns}, Config());
  });
  expect("DNNClassifier: dropout is 1", [] { DNNClassifier({.feature_columns = kColumns, .dropout = 1}, Config()); });
  expect("DNNClassifier: dropout is nan",
         [] { DNNClassifier({.feature_columns = kColumns, .dropout = std::nan("")}, Config()); });
  expect("LinearClassifier: feature_columns has none", [] { LinearClassifier({}, Config()); });
  expect("LinearRegressor: feature_columns has the column 'x' twice", [] {
    LinearRegressor({.feature_columns = {NumericColumn("x"), NumericColumn("x")}}, Config());
  });
  expect("LinearRegressor: the column 'sepal.length' has a dot",
         [] { LinearRegressor({.feature_columns = {NumericColumn("sepal.length")}}, Config()); });
}

}  // namespace
}  // namespace muster::canned_test
