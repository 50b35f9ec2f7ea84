#include "muster/estimator/model/head.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/wrong_configuration.h"
#include "muster/estimator/model/batch_rows.h"
#include "muster/train/threads/error.h"

namespace muster {
namespace {

using HeadMetrics = std::map<std::string, std::shared_ptr<Metric>>;
// Returns the loss of each row and column, [batch, n].
using HeadLoss = torch::Tensor (*)(const torch::Tensor& logits, const Minibatch& minibatch);

void CheckHeadLogits(const torch::Tensor& logits, int64_t dimension) {
  if (logits.dim() != 2 || logits.size(1) != dimension)
    RefuseBatch(
        absl::StrCat("the logits have the shape ", ShapeText(logits), "; the head takes [batch, ", dimension, "]"));
}

// [batch, dimension], of their own type.
torch::Tensor HeadLabels(const torch::Tensor& logits, const Minibatch& minibatch, int64_t dimension) {
  const torch::Tensor labels = AsColumns(minibatch.labels, "the labels' tensor");
  if (labels.size(0) != logits.size(0) || labels.size(1) != dimension)
    RefuseBatch(absl::StrCat("the labels have the shape ", ShapeText(minibatch.labels), "; accepted with logits of ",
                             ShapeText(logits), ": ", dimension == 1 ? absl::StrCat("[", logits.size(0), "] or ") : "",
                             "[", logits.size(0), ", ", dimension, "]"));
  return labels;
}

// Returns class ids, [batch, 1] int64.
torch::Tensor HeadClassIds(const torch::Tensor& logits, const Minibatch& minibatch, int64_t classes) {
  torch::Tensor labels = HeadLabels(logits, minibatch, 1);
  if (!labels.is_floating_point()) labels = labels.to(torch::kInt64);
  torch::Tensor wrong = (labels < 0) | (labels > classes - 1);
  if (labels.is_floating_point()) wrong = wrong | (labels != labels.floor());
  if (!wrong.any().item<bool>()) return labels.to(torch::kInt64);
  const auto row = wrong.squeeze(1).to(torch::kInt64).argmax().item<int64_t>();
  const auto label = labels[row].item<double>();
  const bool outside = label < 0 || label > static_cast<double>(classes - 1);
  RefuseBatch(absl::StrCat("label ", label, " in row ", row, " of the batch is ",
                           outside ? "out of range" : "no whole number", "; accepted: the classes 0 … ", classes - 1));
}

// TensorFlow's SUM_OVER_BATCH_SIZE: not divided by the sum of the weights.
torch::Tensor MeanHeadLoss(const torch::Tensor& losses, const Minibatch& minibatch, const HeadOptions& options) {
  if (options.weight_feature.empty()) return losses.mean();
  const torch::Tensor weights = RowWeights(minibatch, options.weight_feature, losses.size(0));
  return (losses * weights.to(losses.options())).mean();
}

// The weighted loss of each row: TensorFlow's "average_loss".
std::shared_ptr<Metric> AverageHeadLoss(HeadLoss loss, const HeadOptions& options) {
  return MeanOf([loss](const Tensors& predictions,
                       const Minibatch& minibatch) { return loss(predictions.at("logits"), minibatch); },
                options.weight_feature);
}

torch::Tensor SigmoidHeadLoss(const torch::Tensor& logits, const Minibatch& minibatch) {
  const torch::Tensor labels = HeadClassIds(logits, minibatch, 2).to(logits.options());
  return torch::binary_cross_entropy_with_logits(logits, labels, {}, {}, at::Reduction::None);
}

torch::Tensor SoftmaxHeadLoss(const torch::Tensor& logits, const Minibatch& minibatch) {
  const torch::Tensor ids = HeadClassIds(logits, minibatch, logits.size(1)).squeeze(1);
  return torch::cross_entropy_loss(logits, ids, {}, at::Reduction::None).unsqueeze(1);
}

torch::Tensor SquaredHeadLoss(const torch::Tensor& logits, const Minibatch& minibatch) {
  return (logits - HeadLabels(logits, minibatch, logits.size(1)).to(logits.options())).square();
}

// The best accuracy of a model that always predicts the same class.
class AccuracyBaseline final : public Metric {
 public:
  explicit AccuracyBaseline(const HeadOptions& options) : labels_(MeanLabelMetric(options.weight_feature)) {}
  void Reset() override { labels_->Reset(); }
  void Update(const Tensors& predictions, const Minibatch& minibatch) override {
    labels_->Update(predictions, minibatch);
  }
  double Result() const override { return std::max(labels_->Result(), 1 - labels_->Result()); }

 private:
  const std::shared_ptr<Metric> labels_;
};

class BinaryLogisticHead final : public Head {
 public:
  explicit BinaryLogisticHead(HeadOptions options) : options_(std::move(options)) {}

  int64_t logits_dimension() const override { return 1; }

  ModelOutputs Outputs(const torch::Tensor& logits, const Minibatch& minibatch) const override {
    CheckHeadLogits(logits, 1);
    const torch::Tensor two_classes = torch::cat({torch::zeros_like(logits), logits}, 1);
    const torch::Tensor class_ids = two_classes.argmax(1, true);
    ModelOutputs outputs;
    outputs.predictions = {{"logits", logits},
                           {"logistic", logits.sigmoid()},
                           {"probabilities", two_classes.softmax(1)},
                           {"class_ids", class_ids},
                           {"classes", class_ids}};
    if (minibatch.labels.defined())
      outputs.loss = MeanHeadLoss(SigmoidHeadLoss(logits, minibatch), minibatch, options_);
    return outputs;
  }

  HeadMetrics EvalMetrics() const override {
    const std::string& weights = options_.weight_feature;
    return {{"accuracy", AccuracyMetric({"class_ids", weights})},
            {"accuracy_baseline", std::make_shared<AccuracyBaseline>(options_)},
            {"auc", AucMetric({"logistic", weights})},
            {"auc_precision_recall", AucMetric({"logistic", weights}, AucCurve::kPrecisionRecall)},
            {"average_loss", AverageHeadLoss(SigmoidHeadLoss, options_)},
            {"label/mean", MeanLabelMetric(weights)},
            {"precision", PrecisionMetric({"class_ids", weights})},
            {"prediction/mean", MeanMetric({"logistic", weights})},
            {"recall", RecallMetric({"class_ids", weights})}};
  }

  std::map<std::string, ExportOutput> ExportOutputs() const override {
    const ExportOutput classes = {"classify", {"probabilities", "classes"}};
    return {{"serving_default", classes},
            {"classification", classes},
            {"regression", {"regress", {"logistic"}}},
            {"predict", {"predict", {"logits", "logistic", "probabilities", "class_ids", "classes"}}}};
  }

  std::vector<ExportStep> ExportProgram() const override {
    return {
        {.op = "sigmoid", .inputs = {"logits"}, .output = "logistic"},
        {.op = "scale", .inputs = {"logits"}, .output = "head/zeros", .arguments = {{"factor", 0}, {"offset", 0}}},
        {.op = "concat", .inputs = {"head/zeros", "logits"}, .output = "head/logits", .arguments = {{"dim", 1}}},
        {.op = "softmax", .inputs = {"head/logits"}, .output = "probabilities", .arguments = {{"dim", 1}}},
        {.op = "argmax", .inputs = {"head/logits"}, .output = "class_ids", .arguments = {{"dim", 1}, {"keepdim", 1}}},
        {.op = "identity", .inputs = {"class_ids"}, .output = "classes"}};
  }

 private:
  const HeadOptions options_;
};

class SoftmaxHead final : public Head {
 public:
  SoftmaxHead(int64_t classes, HeadOptions options) : classes_(classes), options_(std::move(options)) {}

  int64_t logits_dimension() const override { return classes_; }

  ModelOutputs Outputs(const torch::Tensor& logits, const Minibatch& minibatch) const override {
    CheckHeadLogits(logits, classes_);
    const torch::Tensor class_ids = logits.argmax(1, true);
    ModelOutputs outputs;
    outputs.predictions = {
        {"logits", logits}, {"probabilities", logits.softmax(1)}, {"class_ids", class_ids}, {"classes", class_ids}};
    if (minibatch.labels.defined())
      outputs.loss = MeanHeadLoss(SoftmaxHeadLoss(logits, minibatch), minibatch, options_);
    return outputs;
  }

  HeadMetrics EvalMetrics() const override {
    return {{"accuracy", AccuracyMetric({"class_ids", options_.weight_feature})},
            {"average_loss", AverageHeadLoss(SoftmaxHeadLoss, options_)}};
  }

  std::map<std::string, ExportOutput> ExportOutputs() const override {
    const ExportOutput classes = {"classify", {"probabilities", "classes"}};
    return {{"serving_default", classes},
            {"classification", classes},
            {"predict", {"predict", {"logits", "probabilities", "class_ids", "classes"}}}};
  }

  std::vector<ExportStep> ExportProgram() const override {
    return {{.op = "softmax", .inputs = {"logits"}, .output = "probabilities", .arguments = {{"dim", 1}}},
            {.op = "argmax", .inputs = {"logits"}, .output = "class_ids", .arguments = {{"dim", 1}, {"keepdim", 1}}},
            {.op = "identity", .inputs = {"class_ids"}, .output = "classes"}};
  }

 private:
  const int64_t classes_;
  const HeadOptions options_;
};

class SquaredErrorHead final : public Head {
 public:
  SquaredErrorHead(int64_t dimension, HeadOptions options) : dimension_(dimension), options_(std::move(options)) {}

  int64_t logits_dimension() const override { return dimension_; }

  ModelOutputs Outputs(const torch::Tensor& logits, const Minibatch& minibatch) const override {
    CheckHeadLogits(logits, dimension_);
    ModelOutputs outputs;
    outputs.predictions = {{"predictions", logits}};
    if (minibatch.labels.defined())
      outputs.loss = MeanHeadLoss(SquaredHeadLoss(logits, minibatch), minibatch, options_);
    return outputs;
  }

  HeadMetrics EvalMetrics() const override {
    const std::string& weights = options_.weight_feature;
    return {{"average_loss", MeanSquaredErrorMetric({"predictions", weights})},
            {"label/mean", MeanLabelMetric(weights)},
            {"prediction/mean", MeanMetric({"predictions", weights})}};
  }

  std::map<std::string, ExportOutput> ExportOutputs() const override {
    const ExportOutput values = {"regress", {"predictions"}};
    return {{"serving_default", values}, {"regression", values}, {"predict", {"predict", {"predictions"}}}};
  }

  std::vector<ExportStep> ExportProgram() const override {
    return {{.op = "identity", .inputs = {"logits"}, .output = "predictions"}};
  }

 private:
  const int64_t dimension_;
  const HeadOptions options_;
};

void CheckHeadSize(const char* what, int64_t value, int64_t least, const char* hint) {
  if (value < least)
    throw Error(WrongOptionError(absl::StrCat(what, " is ", value, "; accepted: at least ", least, hint)));
}

}  // namespace

std::shared_ptr<const Head> BinaryClassHead(HeadOptions options) {
  return std::make_shared<BinaryLogisticHead>(std::move(options));
}

std::shared_ptr<const Head> MultiClassHead(int64_t classes, HeadOptions options) {
  CheckHeadSize("classes of a MultiClassHead", classes, 3, " (BinaryClassHead is for two)");
  return std::make_shared<SoftmaxHead>(classes, std::move(options));
}

std::shared_ptr<const Head> RegressionHead(int64_t dimension, HeadOptions options) {
  CheckHeadSize("dimension of a RegressionHead", dimension, 1, "");
  return std::make_shared<SquaredErrorHead>(dimension, std::move(options));
}

}  // namespace muster
