#include "muster/estimator/model/model_fn.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/wrong_configuration.h"
#include "muster/train/threads/error.h"

namespace muster {

const char* ModeName(Mode mode) {
  switch (mode) {
    case Mode::kTrain:
      return "train";
    case Mode::kEval:
      return "eval";
    case Mode::kPredict:
      break;
  }
  return "infer";
}

absl::Status CheckEstimatorSpec(const EstimatorSpec& spec, Mode mode) {
  const auto missing = [mode](const char* what) {
    return WrongOptionError(
        absl::StrCat("the model function returned an EstimatorSpec without ", what, " for mode ", ModeName(mode)));
  };
  if (spec.module == nullptr) return missing("module, which owns the model's variables");
  if (!spec.forward) return missing("forward function, which makes predictions and loss of a batch");
  if (mode != Mode::kEval) return absl::OkStatus();
  for (const auto& [name, metric] : spec.eval_metrics) {
    if (metric == nullptr) return missing(absl::StrCat("a metric behind the name '", name, "'").c_str());
    if (name == "loss" || name == "global_step" || name == "wall_time")
      return WrongOptionError(absl::StrCat("the model function's eval_metrics has a metric named '", name,
                                           "', which Evaluate itself uses; give it another name"));
  }
  return absl::OkStatus();
}

const torch::Tensor& LossOf(const ModelOutputs& outputs, Mode mode) {
  const torch::Tensor& loss = outputs.loss;
  if (!loss.defined())
    throw Error(WrongOptionError(absl::StrCat("the model function returned no loss in mode ", ModeName(mode),
                                              ": its forward function has to set ModelOutputs::loss there")));
  if (loss.numel() != 1)
    throw Error(WrongOptionError(absl::StrCat("the model function's loss has shape [", absl::StrJoin(loss.sizes(), ","),
                                              "] in mode ", ModeName(mode),
                                              ", and must be a scalar: reduce it, e.g. with mean()")));
  if (mode == Mode::kEval && !std::isfinite(loss.item<double>()))
    throw Error(absl::InvalidArgumentError(absl::StrCat("the loss of a batch is ", loss.item<double>(),
                                                        " in evaluation: the model has diverged, or the batch has "
                                                        "values that aren't finite")));
  return loss;
}

}  // namespace muster
