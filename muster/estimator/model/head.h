// Interprets the logits of a model's last layer: its loss, predictions, metrics and export. TensorFlow's heads
// (canned/head.py); docs/canned_models.md says where they differ. Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "muster/estimator/model/model_fn.h"

namespace muster {

class Head {
 public:
  virtual ~Head() = default;
  virtual int64_t logits_dimension() const = 0;  // columns of the logits
  // Returns predictions by TensorFlow's names ("logits", "probabilities", "class_ids", "predictions", "logistic"), and
  // the loss if there are labels: the mean over the batch of each row's loss times its weight. `logits`: [batch,
  // logits_dimension]. Throws Error (InvalidArgument): labels of another shape; a label out of range (names its value,
  // its row and the bound); a label that isn't a whole number.
  virtual ModelOutputs Outputs(const torch::Tensor& logits, const Minibatch& minibatch) const = 0;
  // Metrics of an evaluation: accuracy, precision, recall, AUC, label mean … as in TensorFlow's head. New ones each
  // time.
  virtual std::map<std::string, std::shared_ptr<Metric>> EvalMetrics() const = 0;
  virtual std::map<std::string, ExportOutput> ExportOutputs() const = 0;
  // The last steps of EstimatorSpec::export_program, from "logits" to the predictions.
  virtual std::vector<ExportStep> ExportProgram() const = 0;
};

struct HeadOptions {
  std::string weight_feature;  // its values weigh the rows in loss and metrics; empty: none
};
// Sigmoid cross entropy; labels 0 and 1, int or float, [batch] or [batch, 1].
std::shared_ptr<const Head> BinaryClassHead(HeadOptions options = {});
// Softmax cross entropy; labels 0 … classes − 1. Throws Error (IsWrongConfiguration): classes below 3.
std::shared_ptr<const Head> MultiClassHead(int64_t classes, HeadOptions options = {});
// Mean squared error; labels [batch] (of dimension 1) or [batch, dimension]. Throws Error: a dimension below 1.
std::shared_ptr<const Head> RegressionHead(int64_t dimension = 1, HeadOptions options = {});

}  // namespace muster
