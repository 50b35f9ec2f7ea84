// Measures of a model over many batches, each of which adds to a running state: TensorFlow's tf.metrics. Every result
// is the same as if all rows had been one batch (except AUC's, which counts in 200 thresholds as TensorFlow's does).
// docs/canned_models.md lists the formulas. They sum in float64, on the CPU. Not thread-safe.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>

#include "muster/estimator/model/minibatch.h"

namespace muster {

class Metric {
 public:
  virtual ~Metric() = default;
  virtual void Reset() = 0;
  // Adds a batch. Throws Error (InvalidArgument): a missing prediction, missing labels, shapes that don't agree (names
  // both).
  virtual void Update(const Tensors& predictions, const Minibatch& minibatch) = 0;
  // The result over all batches since Reset; TensorFlow's value (0) if there were none.
  virtual double Result() const = 0;
};

// All of them read the prediction of that name and the minibatch's labels, and weigh rows by the feature `weights`,
// [batch] or [batch, 1], if it isn't empty.
struct MetricInputs {
  std::string prediction;
  std::string weights = {};
};

// The share of rows whose class id (prediction, integers [batch] or [batch, 1]) is the label.
std::shared_ptr<Metric> AccuracyMetric(MetricInputs inputs = {"class_ids"});
// For binary decisions: true positives / (true + false positives), / (true positives + false negatives). A
// floating-point prediction is positive above 0.5; any other number but 0 is positive, as a label is.
std::shared_ptr<Metric> PrecisionMetric(MetricInputs inputs = {"class_ids"});
std::shared_ptr<Metric> RecallMetric(MetricInputs inputs = {"class_ids"});
// Area under the curve of a probability [batch] or [batch, 1] (of two columns: the second), by 200 thresholds and
// trapezoids (tf.metrics.auc). Update also throws Error for a number outside 0 … 1, with its row.
enum class AucCurve { kRoc, kPrecisionRecall };
std::shared_ptr<Metric> AucMetric(MetricInputs inputs = {"probabilities"}, AucCurve curve = AucCurve::kRoc);
// Over all numbers of predictions and labels of the same shape ([batch] and [batch, 1] count as the same).
std::shared_ptr<Metric> MeanSquaredErrorMetric(MetricInputs inputs = {"predictions"});
std::shared_ptr<Metric> MeanAbsoluteErrorMetric(MetricInputs inputs = {"predictions"});
// The mean of a prediction's values, and of the labels.
std::shared_ptr<Metric> MeanMetric(MetricInputs inputs);
std::shared_ptr<Metric> MeanLabelMetric(std::string weights = {});

// The mean of the results of `values` for each batch, [batch] or [batch, n]: for measures of your own.
using BatchValues = std::function<torch::Tensor(const Tensors& predictions, const Minibatch& minibatch)>;
std::shared_ptr<Metric> MeanOf(BatchValues values, std::string weights = {});

}  // namespace muster
