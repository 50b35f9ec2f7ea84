// Measures of a model over many batches, each of which adds to a running state: TensorFlow's tf.metrics. Every one is
// the same number as if all rows had been one batch (AUC apart, which counts in 200 thresholds as TensorFlow's does).
// Not thread-safe.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "muster/estimator/minibatch.h"

namespace muster {

class Metric {
 public:
  virtual ~Metric() = default;
  virtual void Reset() = 0;
  // Adds a batch. Throws Error (InvalidArgument): a prediction that isn't there, shapes that don't agree (both said).
  virtual void Update(const Tensors& predictions, const Minibatch& minibatch) = 0;
  // Of what was added since Reset; TensorFlow's value where nothing was (0).
  virtual double Result() const = 0;
};

// All of them read the prediction of that name and the minibatch's labels, and weigh rows by the feature `weights`, if
// it isn't empty.
struct MetricInputs {
  std::string prediction;
  std::string weights = {};
};

// The share of rows whose class id (prediction, integers [batch] or [batch, 1]) is the label.
std::shared_ptr<Metric> AccuracyMetric(MetricInputs inputs = {"class_ids"});
// Of binary decisions: true positives / (true + false positives), / (true positives + false negatives). The prediction
// is compared with 0.5 if it is floating point.
std::shared_ptr<Metric> PrecisionMetric(MetricInputs inputs = {"class_ids"});
std::shared_ptr<Metric> RecallMetric(MetricInputs inputs = {"class_ids"});
// Area under the curve of a probability [batch] or [batch, 1] (of two columns: the second), by 200 thresholds and
// trapezoids.
enum class AucCurve { kRoc, kPrecisionRecall };
std::shared_ptr<Metric> AucMetric(MetricInputs inputs = {"probabilities"}, AucCurve curve = AucCurve::kRoc);
std::shared_ptr<Metric> MeanSquaredErrorMetric(MetricInputs inputs = {"predictions"});
std::shared_ptr<Metric> MeanAbsoluteErrorMetric(MetricInputs inputs = {"predictions"});
// The mean of a prediction's values, and of the labels.
std::shared_ptr<Metric> MeanMetric(MetricInputs inputs);
std::shared_ptr<Metric> MeanLabelMetric(std::string weights = {});

}  // namespace muster
