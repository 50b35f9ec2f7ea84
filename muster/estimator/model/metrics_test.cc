#include "muster/estimator/model/metrics.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "muster/base/testing/built_at.h"
#include "muster/train/threads/error.h"

namespace muster::metrics_test {
namespace {

using nlohmann::json;

Minibatch Labelled(const torch::Tensor& labels, const Tensors& features = {}) { return {features, labels}; }

double Of(Metric& metric, const Tensors& predictions, const Minibatch& minibatch) {
  metric.Reset();
  metric.Update(predictions, minibatch);
  return metric.Result();
}

std::string Refusal(Metric& metric, const Tensors& predictions, const Minibatch& minibatch) {
  try {
    metric.Update(predictions, minibatch);
  } catch (const Error& error) {
    EXPECT_EQ(error.status().code(), absl::StatusCode::kInvalidArgument);
    return error.what();
  }
  return "nothing was refused";
}

// The names of the results in tests/data/canned_models/metrics.json.
std::map<std::string, std::shared_ptr<Metric>> RecordedMetrics(const std::string& weights) {
  return {{"accuracy", AccuracyMetric({"class_ids", weights})},
          {"precision", PrecisionMetric({"class_ids", weights})},
          {"recall", RecallMetric({"class_ids", weights})},
          {"auc", AucMetric({"probabilities", weights})},
          {"auc_precision_recall", AucMetric({"probabilities", weights}, AucCurve::kPrecisionRecall)},
          {"mean_squared_error", MeanSquaredErrorMetric({"probabilities", weights})},
          {"mean_absolute_error", MeanAbsoluteErrorMetric({"probabilities", weights})},
          {"prediction/mean", MeanMetric({"probabilities", weights})},
          {"label/mean", MeanLabelMetric(weights)}};
}

struct Rows {
  torch::Tensor probabilities;  // [rows, 1]
  torch::Tensor labels;         // [rows]
  torch::Tensor weights;        // [rows]; undefined: none

  Tensors Predictions(int64_t begin, int64_t end) const {
    const torch::Tensor part = probabilities.slice(0, begin, end);
    return {{"probabilities", part}, {"class_ids", (part > 0.5).to(torch::kInt64)}};
  }
  Minibatch Batch(int64_t begin, int64_t end) const {
    Minibatch minibatch = Labelled(labels.slice(0, begin, end));
    if (weights.defined()) minibatch.features["weight"] = weights.slice(0, begin, end);
    return minibatch;
  }
};

Rows RowsOf(const json& recorded) {
  Rows rows;
  rows.probabilities = torch::tensor(recorded.at("predictions").get<std::vector<float>>()).unsqueeze(1);
  rows.labels = torch::tensor(recorded.at("labels").get<std::vector<int64_t>>());
  if (!recorded.at("weights").is_null()) rows.weights = torch::tensor(recorded.at("weights").get<std::vector<float>>());
  return rows;
}

TEST(MetricsTest, TensorFlowsFiguresInBatchesAndAtOnce) {
  std::ifstream file(SourceFolder() + "/tests/data/canned_models/metrics.json");
  const json recorded = json::parse(file);
  const int64_t batch = recorded.at("batch");
  int compared = 0;
  for (const json& test : recorded.at("cases")) {
    const Rows rows = RowsOf(test);
    const int64_t size = rows.labels.size(0);
    ASSERT_GT(size, 2 * batch);
    for (const auto& [name, metric] : RecordedMetrics(rows.weights.defined() ? "weight" : "")) {
      SCOPED_TRACE(test.at("name").get<std::string>() + " " + name);
      for (int64_t begin = 0; begin < size; begin += batch)
        metric->Update(rows.Predictions(begin, begin + batch), rows.Batch(begin, begin + batch));
      // TensorFlow sums in float32.
      EXPECT_NEAR(metric->Result(), test.at("results").at(name).get<double>(), 2e-6);
      const double in_batches = metric->Result();
      EXPECT_NEAR(Of(*metric, rows.Predictions(0, size), rows.Batch(0, size)), in_batches, 1e-12);
      ++compared;
    }
  }
  EXPECT_GE(compared, 80);
}

TEST(MetricsTest, NothingSeenIsZeroAndResetForgets) {
  const Tensors predictions = {{"probabilities", torch::tensor({0.9, 0.2})},
                               {"class_ids", torch::tensor({1, 0}, torch::kInt64)}};
  const Minibatch minibatch = Labelled(torch::tensor({1, 1}, torch::kInt64));
  for (const auto& [name, metric] : RecordedMetrics("")) {
    EXPECT_EQ(metric->Result(), 0) << name;
    metric->Update(predictions, minibatch);
    metric->Reset();
    EXPECT_EQ(metric->Result(), 0) << name;
  }
}

TEST(MetricsTest, AccuracyOfColumnsAndOfFloatLabels) {
  const auto metric = AccuracyMetric();
  const Tensors ids = {{"class_ids", torch::tensor({2, 0, 1, 2}, torch::kInt64)}};
  EXPECT_EQ(Of(*metric, ids, Labelled(torch::tensor({2, 1, 1, 0}, torch::kInt32))), 0.5);
  EXPECT_EQ(Of(*metric, ids, Labelled(torch::tensor({2., 0., 1., 0.}).unsqueeze(1))), 0.75);
  EXPECT_EQ(Of(*metric, {{"class_ids", ids.at("class_ids").unsqueeze(1)}},
               Labelled(torch::tensor({0, 0, 1, 0}, torch::kInt64))),
            0.5);
}

TEST(MetricsTest, DecisionsOfProbabilitiesAreAboveOneHalf) {
  const Tensors predictions = {{"logistic", torch::tensor({0.5, 0.51, 0.9, 0.1})}};
  const Minibatch minibatch = Labelled(torch::tensor({1, 1, 0, 0}, torch::kInt64));
  EXPECT_EQ(Of(*PrecisionMetric({"logistic"}), predictions, minibatch), 0.5);
  EXPECT_EQ(Of(*RecallMetric({"logistic"}), predictions, minibatch), 0.5);
}

TEST(MetricsTest, AucOfTwoColumnsIsOfTheSecond) {
  const torch::Tensor positive = torch::tensor({0.1, 0.4, 0.35, 0.8});
  const Minibatch minibatch = Labelled(torch::tensor({0, 0, 1, 1}, torch::kInt64));
  const double one_column = Of(*AucMetric(), {{"probabilities", positive}}, minibatch);
  EXPECT_NEAR(one_column, 0.75, 1e-5);
  EXPECT_EQ(Of(*AucMetric(), {{"probabilities", torch::stack({1 - positive, positive}, 1)}}, minibatch), one_column);
}

TEST(MetricsTest, ErrorsOfSeveralNumbersARowWeighedByRow) {
  const Tensors predictions = {{"predictions", torch::tensor({{1., 2.}, {3., 5.}})}};
  const Tensors weights = {{"w", torch::tensor({{3}, {1}}, torch::kInt64)}};
  const Minibatch minibatch = Labelled(torch::tensor({{0., 4.}, {3., 1.}}), weights);
  EXPECT_DOUBLE_EQ(Of(*MeanSquaredErrorMetric(), predictions, minibatch), (1 + 4 + 0 + 16) / 4.);
  EXPECT_DOUBLE_EQ(Of(*MeanSquaredErrorMetric({"predictions", "w"}), predictions, minibatch), (3 * 5 + 16) / 8.);
  EXPECT_DOUBLE_EQ(Of(*MeanAbsoluteErrorMetric({"predictions", "w"}), predictions, minibatch), (3 * 3 + 4) / 8.);
  EXPECT_DOUBLE_EQ(Of(*MeanMetric({"predictions", "w"}), predictions, minibatch), (3 * 3 + 8) / 8.);
  EXPECT_DOUBLE_EQ(Of(*MeanLabelMetric("w"), predictions, minibatch), (3 * 4 + 4) / 8.);
}

TEST(MetricsTest, MeanOfOnesOwnFunction) {
  const auto metric = MeanOf([](const Tensors& predictions, const Minibatch& minibatch) {
    return (predictions.at("p") - minibatch.labels).clamp_min(0);
  });
  metric->Update({{"p", torch::tensor({5., 1.})}}, Labelled(torch::tensor({2., 2.})));
  metric->Update({{"p", torch::tensor({2.})}}, Labelled(torch::tensor({2.})));
  EXPECT_DOUBLE_EQ(metric->Result(), 1);
}

TEST(MetricsTest, RefusesWhatIsNotThere) {
  const Minibatch labelled = Labelled(torch::tensor({1, 0}, torch::kInt64));
  const std::string prediction = Refusal(*AccuracyMetric(), {{"a", torch::zeros(2)}, {"b", torch::zeros(2)}}, labelled);
  EXPECT_NE(prediction.find("prediction 'class_ids'"), std::string::npos) << prediction;
  EXPECT_NE(prediction.find("a, b"), std::string::npos) << prediction;
  const std::string labels = Refusal(*MeanSquaredErrorMetric(), {{"predictions", torch::zeros(2)}}, {});
  EXPECT_NE(labels.find("the batch has none"), std::string::npos) << labels;
  const std::string weights = Refusal(*MeanLabelMetric("weight"), {}, labelled);
  EXPECT_NE(weights.find("weight"), std::string::npos) << weights;
}

TEST(MetricsTest, RefusesShapesThatDontAgreeAndSaysBoth) {
  const std::string pair =
      Refusal(*MeanSquaredErrorMetric(), {{"predictions", torch::zeros({4, 2})}}, Labelled(torch::zeros({4})));
  EXPECT_NE(pair.find("[4, 2]"), std::string::npos) << pair;
  EXPECT_NE(pair.find("[4]"), std::string::npos) << pair;
  const std::string weights = Refusal(*MeanLabelMetric("w"), {}, Labelled(torch::zeros(3), {{"w", torch::zeros(2)}}));
  EXPECT_NE(weights.find("'w' has the shape [2]"), std::string::npos) << weights;
  const std::string rows = Refusal(*AucMetric(), {{"probabilities", torch::zeros(3)}}, Labelled(torch::zeros(2)));
  EXPECT_NE(rows.find("3 rows"), std::string::npos) << rows;
  const std::string scalar = Refusal(*MeanMetric({"p"}), {{"p", torch::tensor(1.)}}, {});
  EXPECT_NE(scalar.find("scalar"), std::string::npos) << scalar;
}

TEST(MetricsTest, RefusesPredictionsOfAnotherKind) {
  const Minibatch minibatch = Labelled(torch::zeros(3));
  const std::string accuracy = Refusal(*AccuracyMetric({"p"}), {{"p", torch::zeros(3)}}, minibatch);
  EXPECT_NE(accuracy.find("class ids"), std::string::npos) << accuracy;
  const std::string above = Refusal(*AucMetric({"p"}), {{"p", torch::tensor({0.5, 1.25, 0.})}}, minibatch);
  EXPECT_NE(above.find("is 1.25 in row 1"), std::string::npos) << above;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::string none = Refusal(*AucMetric({"p"}), {{"p", torch::tensor({0.5, 1., nan})}}, minibatch);
  EXPECT_NE(none.find("row 2"), std::string::npos) << none;
  const std::string columns = Refusal(*AucMetric({"p"}), {{"p", torch::zeros({3, 3})}}, minibatch);
  EXPECT_NE(columns.find("3 columns"), std::string::npos) << columns;
}

}  // namespace
}  // namespace muster::metrics_test
