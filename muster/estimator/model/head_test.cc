#include "muster/estimator/model/head.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "muster/base/wrong_configuration.h"
#include "muster/train/threads/error.h"

namespace muster::head_test {
namespace {

Minibatch Labelled(const torch::Tensor& labels, const Tensors& features = {}) { return {features, labels}; }

absl::Status RefusalOf(const Head& head, const torch::Tensor& logits, const Minibatch& minibatch) {
  try {
    head.Outputs(logits, minibatch);
  } catch (const Error& error) {
    return error.status();
  }
  return absl::OkStatus();
}

void ExpectRefusal(const Head& head, const torch::Tensor& logits, const torch::Tensor& labels,
                   const std::string& words) {
  const absl::Status status = RefusalOf(head, logits, Labelled(labels));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find(words), absl::string_view::npos) << status;
}

std::vector<std::string> Names(const std::map<std::string, std::shared_ptr<Metric>>& metrics) {
  std::vector<std::string> names;
  for (const auto& [name, metric] : metrics) names.push_back(name);
  return names;
}

double LossOf(const Head& head, const torch::Tensor& logits, const Minibatch& minibatch) {
  return head.Outputs(logits, minibatch).loss.item<double>();
}

// Expects that each output names only predictions that exist.
void ExpectExportsPredictions(const Head& head, const torch::Tensor& logits) {
  const Tensors predictions = head.Outputs(logits, {}).predictions;
  EXPECT_EQ(head.ExportOutputs().count("serving_default"), 1u);
  for (const auto& [output, exported] : head.ExportOutputs())
    for (const std::string& name : exported.predictions)
      EXPECT_EQ(predictions.count(name), 1u) << output << " " << name;
}

const std::vector<double> kLogits = {0, -2, 3, 1e-9};

torch::Tensor BinaryLogits() { return torch::tensor(kLogits).unsqueeze(1); }

TEST(HeadTest, BinaryPredictions) {
  const Tensors predictions = BinaryClassHead()->Outputs(BinaryLogits(), {}).predictions;
  EXPECT_EQ(predictions.size(), 5u);
  // The first of two equal ones wins; if the probabilities are equal, the logit decides.
  const torch::Tensor ids = torch::tensor({0, 0, 1, 1}, torch::kInt64).unsqueeze(1);
  EXPECT_TRUE(torch::equal(predictions.at("class_ids"), ids));
  EXPECT_TRUE(torch::equal(predictions.at("classes"), ids));
  EXPECT_TRUE(torch::equal(predictions.at("logits"), BinaryLogits()));
  for (int64_t row = 0; row < 4; ++row) {
    const double positive = 1 / (1 + std::exp(-kLogits[row]));
    EXPECT_NEAR(predictions.at("logistic")[row][0].item<double>(), positive, 1e-6);
    EXPECT_NEAR(predictions.at("probabilities")[row][0].item<double>(), 1 - positive, 1e-6);
    EXPECT_NEAR(predictions.at("probabilities")[row][1].item<double>(), positive, 1e-6);
  }
  ExpectExportsPredictions(*BinaryClassHead(), BinaryLogits());
  EXPECT_FALSE(BinaryClassHead()->Outputs(BinaryLogits(), {}).loss.defined());
}

TEST(HeadTest, BinaryLossIsTheMeanOverTheBatch) {
  const std::vector<double> labels = {1, 0, 1, 0};
  const std::vector<double> weights = {1, 2, 0, 5};
  double sum = 0;
  double weighed = 0;
  for (size_t row = 0; row < 4; ++row) {
    const double positive = 1 / (1 + std::exp(-kLogits[row]));
    const double loss = -std::log(labels[row] == 1 ? positive : 1 - positive);
    sum += loss;
    weighed += weights[row] * loss;
  }
  const auto head = BinaryClassHead();
  const torch::Tensor ids = torch::tensor({1, 0, 1, 0}, torch::kInt64);
  EXPECT_NEAR(LossOf(*head, BinaryLogits(), Labelled(ids)), sum / 4, 1e-6);
  EXPECT_NEAR(LossOf(*head, BinaryLogits(), Labelled(ids.to(torch::kInt32).unsqueeze(1))), sum / 4, 1e-6);
  EXPECT_NEAR(LossOf(*head, BinaryLogits(), Labelled(ids.to(torch::kFloat32))), sum / 4, 1e-6);
  EXPECT_NEAR(LossOf(*head, BinaryLogits(), Labelled(ids.to(torch::kBool))), sum / 4, 1e-6);
  // The loss isn't divided by the weights' sum; the metric is.
  const auto weighing = BinaryClassHead({"w"});
  const Minibatch minibatch = Labelled(ids, {{"w", torch::tensor(weights)}});
  const ModelOutputs outputs = weighing->Outputs(BinaryLogits(), minibatch);
  EXPECT_NEAR(outputs.loss.item<double>(), weighed / 4, 1e-6);
  const auto average = weighing->EvalMetrics().at("average_loss");
  average->Update(outputs.predictions, minibatch);
  EXPECT_NEAR(average->Result(), weighed / 8, 1e-6);
}

TEST(HeadTest, BinaryMetrics) {
  const auto head = BinaryClassHead({"w"});
  const auto metrics = head->EvalMetrics();
  EXPECT_EQ(Names(metrics),
            (std::vector<std::string>{"accuracy", "accuracy_baseline", "auc", "auc_precision_recall", "average_loss",
                                      "label/mean", "precision", "prediction/mean", "recall"}));
  const Minibatch minibatch =
      Labelled(torch::tensor({0, 1, 1, 0}, torch::kInt64), {{"w", torch::tensor({1., 1., 2., 4.})}});
  const Tensors predictions = head->Outputs(BinaryLogits(), minibatch).predictions;
  EXPECT_EQ(metrics.at("accuracy_baseline")->Result(), 1);
  for (const auto& [name, metric] : metrics) metric->Update(predictions, minibatch);
  EXPECT_DOUBLE_EQ(metrics.at("accuracy")->Result(), 3 / 8.);
  EXPECT_DOUBLE_EQ(metrics.at("label/mean")->Result(), 3 / 8.);
  EXPECT_DOUBLE_EQ(metrics.at("accuracy_baseline")->Result(), 5 / 8.);
  EXPECT_DOUBLE_EQ(metrics.at("precision")->Result(), 2 / 6.);
  EXPECT_DOUBLE_EQ(metrics.at("recall")->Result(), 2 / 3.);
  const double mean = (0.5 + 1 / (1 + std::exp(2.)) + 2 / (1 + std::exp(-3.)) + 4 * 0.5) / 8;
  EXPECT_NEAR(metrics.at("prediction/mean")->Result(), mean, 1e-6);
  metrics.at("accuracy_baseline")->Reset();
  EXPECT_EQ(metrics.at("accuracy_baseline")->Result(), 1);
  EXPECT_NE(head->EvalMetrics().at("accuracy"), metrics.at("accuracy"));
}

TEST(HeadTest, MultiClass) {
  const auto head = MultiClassHead(3);
  EXPECT_EQ(head->logits_dimension(), 3);
  const torch::Tensor logits = torch::tensor({{1., 2., 0.}, {0., -1., 3.}});
  const Minibatch minibatch = Labelled(torch::tensor({1, 0}, torch::kInt64));
  const ModelOutputs outputs = head->Outputs(logits, minibatch);
  EXPECT_TRUE(torch::equal(outputs.predictions.at("class_ids"), torch::tensor({{1}, {2}}, torch::kInt64)));
  EXPECT_EQ(outputs.predictions.count("logistic"), 0u);
  const double first = std::exp(2.) / (std::exp(1.) + std::exp(2.) + 1);
  const double second = 1 / (1 + std::exp(-1.) + std::exp(3.));
  EXPECT_NEAR(outputs.predictions.at("probabilities")[0][1].item<double>(), first, 1e-6);
  EXPECT_NEAR(outputs.loss.item<double>(), -(std::log(first) + std::log(second)) / 2, 1e-6);
  const auto metrics = head->EvalMetrics();
  EXPECT_EQ(Names(metrics), (std::vector<std::string>{"accuracy", "average_loss"}));
  for (const auto& [name, metric] : metrics) metric->Update(outputs.predictions, minibatch);
  EXPECT_DOUBLE_EQ(metrics.at("accuracy")->Result(), 0.5);
  EXPECT_NEAR(metrics.at("average_loss")->Result(), outputs.loss.item<double>(), 1e-6);
  ExpectExportsPredictions(*head, logits);
}

TEST(HeadTest, Regression) {
  const auto head = RegressionHead(2, {"w"});
  const torch::Tensor logits = torch::tensor({{1., 2.}, {3., 4.}});
  const Minibatch minibatch = Labelled(torch::tensor({{1., 0.}, {0., 4.}}), {{"w", torch::tensor({1., 3.})}});
  const ModelOutputs outputs = head->Outputs(logits, minibatch);
  EXPECT_TRUE(torch::equal(outputs.predictions.at("predictions"), logits));
  EXPECT_NEAR(outputs.loss.item<double>(), (4 + 3 * 9) / 4., 1e-6);
  const auto metrics = head->EvalMetrics();
  EXPECT_EQ(Names(metrics), (std::vector<std::string>{"average_loss", "label/mean", "prediction/mean"}));
  for (const auto& [name, metric] : metrics) metric->Update(outputs.predictions, minibatch);
  EXPECT_DOUBLE_EQ(metrics.at("average_loss")->Result(), (4 + 3 * 9) / 8.);
  EXPECT_DOUBLE_EQ(metrics.at("label/mean")->Result(), (1 + 3 * 4) / 8.);
  EXPECT_DOUBLE_EQ(metrics.at("prediction/mean")->Result(), (3 + 3 * 7) / 8.);
  ExpectExportsPredictions(*head, logits);
  // Labels [batch] for a dimension of 1, also whole numbers.
  EXPECT_EQ(LossOf(*RegressionHead(), torch::tensor({{1.}, {3.}}), Labelled(torch::tensor({1, 1}, torch::kInt32))), 2);
}

TEST(HeadTest, LabelsOutOfRangeAreNamedWithTheirRowAndTheBound) {
  const torch::Tensor three = torch::zeros({4, 3});
  const auto classes = MultiClassHead(3);
  ExpectRefusal(*classes, three, torch::tensor({0, 2, 7, 9}, torch::kInt64),
                "label 7 in row 2 of the batch is out of range; accepted: the classes 0 … 2");
  ExpectRefusal(*classes, three, torch::tensor({0, -1, 1, 1}, torch::kInt32), "label -1 in row 1 of the batch");
  ExpectRefusal(*classes, three, torch::tensor({0, 1, 1, 200}, torch::kUInt8), "label 200 in row 3");
  ExpectRefusal(*classes, three, torch::tensor({0., 1.5, 1., 2.}),
                "label 1.5 in row 1 of the batch is no whole number");
  ExpectRefusal(*classes, three, torch::tensor({0., 1., 1., 3.}).unsqueeze(1), "label 3 in row 3");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  ExpectRefusal(*classes, three, torch::tensor({nan, 1., 1., 2.}), "label nan in row 0");
  ExpectRefusal(*BinaryClassHead(), torch::zeros({2, 1}), torch::tensor({0, 2}, torch::kInt64),
                "label 2 in row 1 of the batch is out of range; accepted: the classes 0 … 1");
  // Metrics check the labels in the same way.
  const auto average = classes->EvalMetrics().at("average_loss");
  EXPECT_THROW(average->Update({{"logits", three}}, Labelled(torch::full({4}, 3, torch::kInt64))), Error);
}

TEST(HeadTest, RefusesShapesThatDontFit) {
  ExpectRefusal(*BinaryClassHead(), torch::zeros({4, 1}), torch::zeros({4, 2}),
                "the labels have the shape [4, 2]; accepted with logits of [4, 1]: [4] or [4, 1]");
  ExpectRefusal(*BinaryClassHead(), torch::zeros({4, 1}), torch::zeros({3}), "shape [3]");
  ExpectRefusal(*RegressionHead(2), torch::zeros({4, 2}), torch::zeros({4}), "logits of [4, 2]: [4, 2]");
  ExpectRefusal(*MultiClassHead(3), torch::zeros({4, 2}), torch::zeros({4}), "the logits have the shape [4, 2]");
  ExpectRefusal(*RegressionHead(), torch::zeros({4}), torch::zeros({4}), "the head takes [batch, 1]");
  const absl::Status weights = RefusalOf(*RegressionHead(1, {"w"}), torch::zeros({4, 1}),
                                         Labelled(torch::zeros({4}), {{"w", torch::ones({4, 2})}}));
  EXPECT_NE(weights.message().find("'w' has the shape [4, 2]"), absl::string_view::npos) << weights;
}

TEST(HeadTest, RefusesSizes) {
  for (const auto& make : std::vector<std::function<void()>>{[] { MultiClassHead(2); }, [] { RegressionHead(0); }}) {
    try {
      make();
      ADD_FAILURE() << "nothing was refused";
    } catch (const Error& error) {
      EXPECT_TRUE(IsWrongConfiguration(error.status())) << error.status();
    }
  }
}

}  // namespace
}  // namespace muster::head_test
