#include "muster/estimator/model/metrics.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/estimator/model/batch_rows.h"

namespace muster {
namespace {

// tf.metrics.auc: the number of thresholds, how far the outermost ones lie outside of 0 … 1, and the term that keeps an
// empty quotient from being 0 / 0.
constexpr int64_t kAucThresholds = 200;
constexpr double kAucMargin = 1e-7;
constexpr double kAucEpsilon = 1e-6;

std::string MetricPredictionName(const std::string& name) { return absl::StrCat("prediction '", name, "'"); }

// Returns [rows, n], with its own type.
torch::Tensor MetricPrediction(const Tensors& predictions, const std::string& name) {
  const auto found = predictions.find(name);
  if (found == predictions.end())
    RefuseBatch(absl::StrCat("a metric reads the ", MetricPredictionName(name), ", which the model hasn't; there are: ",
                             absl::StrJoin(predictions, ", ", [](std::string* out, const auto& prediction) {
                               out->append(prediction.first);
                             })));
  return AsColumns(found->second, MetricPredictionName(name)).detach().to(torch::kCPU);
}

torch::Tensor MetricLabels(const Minibatch& minibatch) {
  if (!minibatch.labels.defined()) RefuseBatch("a metric compares with labels, and the batch has none");
  return AsColumns(minibatch.labels, "the labels' tensor").detach().to(torch::kCPU, torch::kFloat64);
}

torch::Tensor MetricWeights(const Minibatch& minibatch, const std::string& feature, const torch::Tensor& values) {
  return RowWeights(minibatch, feature, values.size(0)).to(torch::kCPU);
}

// A prediction and the labels, of the same shape [rows, n].
struct MetricPair {
  torch::Tensor predicted;
  torch::Tensor labels;
};
MetricPair MetricPairOf(const Tensors& predictions, const Minibatch& minibatch, const std::string& name) {
  MetricPair pair = {MetricPrediction(predictions, name), MetricLabels(minibatch)};
  if (pair.predicted.sizes() != pair.labels.sizes())
    RefuseBatch(absl::StrCat(MetricPredictionName(name), " has the shape ", ShapeText(predictions.at(name)),
                             ", the labels have ", ShapeText(minibatch.labels),
                             "; a metric compares one with the other"));
  return pair;
}

class WeightedMean final : public Metric {
 public:
  WeightedMean(BatchValues values, std::string weights) : values_(std::move(values)), weights_(std::move(weights)) {}

  void Reset() override { total_ = weight_ = 0; }

  void Update(const Tensors& predictions, const Minibatch& minibatch) override {
    const torch::Tensor values = AsColumns(values_(predictions, minibatch), "the result of a metric's function")
                                     .detach()
                                     .to(torch::kCPU, torch::kFloat64);
    const torch::Tensor weights = MetricWeights(minibatch, weights_, values);
    total_ += (values * weights).sum().item<double>();
    weight_ += weights.sum().item<double>() * static_cast<double>(values.size(1));
  }

  double Result() const override { return weight_ > 0 ? total_ / weight_ : 0; }

 private:
  const BatchValues values_;
  const std::string weights_;
  double total_ = 0;
  double weight_ = 0;
};

enum class DecisionShare { kOfPositivePredictions, kOfPositiveLabels };

class BinaryDecisions final : public Metric {
 public:
  BinaryDecisions(MetricInputs inputs, DecisionShare share) : inputs_(std::move(inputs)), share_(share) {}

  void Reset() override { true_positives_ = all_ = 0; }

  void Update(const Tensors& predictions, const Minibatch& minibatch) override {
    const auto [predicted, labels] = MetricPairOf(predictions, minibatch, inputs_.prediction);
    const torch::Tensor weights = MetricWeights(minibatch, inputs_.weights, predicted);
    const torch::Tensor said = predicted.is_floating_point() ? predicted > 0.5 : predicted != 0;
    const torch::Tensor is = labels != 0;
    true_positives_ += ((said & is) * weights).sum().item<double>();
    all_ += ((share_ == DecisionShare::kOfPositivePredictions ? said : is) * weights).sum().item<double>();
  }

  double Result() const override { return all_ > 0 ? true_positives_ / all_ : 0; }

 private:
  const MetricInputs inputs_;
  const DecisionShare share_;
  double true_positives_ = 0;
  double all_ = 0;
};

// Counts for each row how many thresholds its probability exceeds; the counts at every threshold are sums over these.
class AucByThresholds final : public Metric {
 public:
  AucByThresholds(MetricInputs inputs, AucCurve curve) : inputs_(std::move(inputs)), curve_(curve) {
    std::vector<float> thresholds = {static_cast<float>(-kAucMargin)};
    for (int64_t i = 1; i < kAucThresholds - 1; ++i)
      thresholds.push_back(static_cast<float>(static_cast<double>(i) / (kAucThresholds - 1)));
    thresholds.push_back(static_cast<float>(1 + kAucMargin));
    thresholds_ = torch::tensor(thresholds);
    Reset();
  }

  void Reset() override {
    positives_ = torch::zeros({kAucThresholds + 1}, torch::kFloat64);
    negatives_ = torch::zeros({kAucThresholds + 1}, torch::kFloat64);
  }

  void Update(const Tensors& predictions, const Minibatch& minibatch) override {
    const torch::Tensor probabilities = Probabilities(predictions);
    const torch::Tensor labels = MetricLabels(minibatch);
    if (labels.size(1) != 1 || labels.size(0) != probabilities.size(0))
      RefuseBatch(absl::StrCat(MetricPredictionName(inputs_.prediction), " has ", probabilities.size(0),
                               " rows, the labels have the shape ", ShapeText(minibatch.labels),
                               "; an AUC needs a label a row"));
    const torch::Tensor weights = MetricWeights(minibatch, inputs_.weights, probabilities).squeeze(1);
    const torch::Tensor passed = torch::bucketize(probabilities, thresholds_);
    const torch::Tensor positive = (labels.squeeze(1) != 0).to(torch::kFloat64);
    positives_ += torch::bincount(passed, weights * positive, kAucThresholds + 1);
    negatives_ += torch::bincount(passed, weights * (1 - positive), kAucThresholds + 1);
  }

  double Result() const override {
    const torch::Tensor true_positives = AboveThresholds(positives_);
    const torch::Tensor false_positives = AboveThresholds(negatives_);
    const torch::Tensor recall = (true_positives + kAucEpsilon) / (positives_.sum() + kAucEpsilon);
    torch::Tensor x = false_positives / (negatives_.sum() + kAucEpsilon);
    torch::Tensor y = recall;
    if (curve_ == AucCurve::kPrecisionRecall) {
      x = recall;
      y = (true_positives + kAucEpsilon) / (true_positives + false_positives + kAucEpsilon);
    }
    const torch::Tensor widths = x.slice(0, 0, kAucThresholds - 1) - x.slice(0, 1);
    const torch::Tensor heights = (y.slice(0, 0, kAucThresholds - 1) + y.slice(0, 1)) / 2;
    return (widths * heights).sum().item<double>();
  }

 private:
  // [rows], float32 as the thresholds are.
  torch::Tensor Probabilities(const Tensors& predictions) const {
    torch::Tensor given = MetricPrediction(predictions, inputs_.prediction);
    if (given.size(1) > 2)
      RefuseBatch(absl::StrCat(MetricPredictionName(inputs_.prediction), " has ", given.size(1),
                               " columns; an AUC is of two classes: accepted are 1 column and 2"));
    given = given.select(1, given.size(1) - 1).to(torch::kFloat32).contiguous();
    const torch::Tensor wrong = ((given >= 0) & (given <= 1)).logical_not();
    if (wrong.any().item<bool>()) {
      const auto row = wrong.to(torch::kInt64).argmax().item<int64_t>();
      RefuseBatch(absl::StrCat(MetricPredictionName(inputs_.prediction), " is ", given[row].item<float>(), " in row ",
                               row, "; an AUC is of probabilities, 0 … 1"));
    }
    return given;
  }

  // Returns for each threshold the weight of the rows above it.
  static torch::Tensor AboveThresholds(const torch::Tensor& by_passed) {
    return by_passed.flip(0).cumsum(0).flip(0).slice(0, 1);
  }

  const MetricInputs inputs_;
  const AucCurve curve_;
  torch::Tensor thresholds_;  // ascending
  // [thresholds + 1]: the weight of the rows that exceed this many thresholds.
  torch::Tensor positives_;
  torch::Tensor negatives_;
};

std::shared_ptr<Metric> MeanOfDifferences(MetricInputs inputs, torch::Tensor (*measure)(const torch::Tensor&)) {
  return MeanOf(
      [name = std::move(inputs.prediction), measure](const Tensors& predictions, const Minibatch& minibatch) {
        const auto [predicted, labels] = MetricPairOf(predictions, minibatch, name);
        return measure(predicted.to(torch::kFloat64) - labels);
      },
      std::move(inputs.weights));
}

}  // namespace

std::shared_ptr<Metric> MeanOf(BatchValues values, std::string weights) {
  return std::make_shared<WeightedMean>(std::move(values), std::move(weights));
}

std::shared_ptr<Metric> AccuracyMetric(MetricInputs inputs) {
  return MeanOf(
      [name = std::move(inputs.prediction)](const Tensors& predictions, const Minibatch& minibatch) {
        const auto [predicted, labels] = MetricPairOf(predictions, minibatch, name);
        if (predicted.is_floating_point())
          RefuseBatch(absl::StrCat(MetricPredictionName(name),
                                   " is floating point; an accuracy is of class ids, as of argmax()"));
        return predicted == labels;
      },
      std::move(inputs.weights));
}

std::shared_ptr<Metric> PrecisionMetric(MetricInputs inputs) {
  return std::make_shared<BinaryDecisions>(std::move(inputs), DecisionShare::kOfPositivePredictions);
}

std::shared_ptr<Metric> RecallMetric(MetricInputs inputs) {
  return std::make_shared<BinaryDecisions>(std::move(inputs), DecisionShare::kOfPositiveLabels);
}

std::shared_ptr<Metric> AucMetric(MetricInputs inputs, AucCurve curve) {
  return std::make_shared<AucByThresholds>(std::move(inputs), curve);
}

std::shared_ptr<Metric> MeanSquaredErrorMetric(MetricInputs inputs) {
  return MeanOfDifferences(std::move(inputs), [](const torch::Tensor& difference) { return difference.square(); });
}

std::shared_ptr<Metric> MeanAbsoluteErrorMetric(MetricInputs inputs) {
  return MeanOfDifferences(std::move(inputs), [](const torch::Tensor& difference) { return difference.abs(); });
}

std::shared_ptr<Metric> MeanMetric(MetricInputs inputs) {
  return MeanOf([name = std::move(inputs.prediction)](const Tensors& predictions,
                                                      const Minibatch&) { return MetricPrediction(predictions, name); },
                std::move(inputs.weights));
}

std::shared_ptr<Metric> MeanLabelMetric(std::string weights) {
  return MeanOf([](const Tensors&, const Minibatch& minibatch) { return MetricLabels(minibatch); }, std::move(weights));
}

}  // namespace muster
