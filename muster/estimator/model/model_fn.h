// Describes a model once: a user's function that makes its module and says, for each of the three modes, what comes out
// of a batch, what the loss is, how it is trained and measured. TensorFlow's model_fn and EstimatorSpec; as there is no
// graph, the spec holds functions that are called once per batch. docs/estimator.md walks through one.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "muster/estimator/model/metrics.h"
#include "muster/estimator/model/minibatch.h"
#include "muster/estimator/model/run_config.h"
#include "muster/optim/optimizer_spec.h"
#include "muster/train/hook_api/session_hook.h"
#include "muster/train/session/scaffold.h"

namespace muster {

enum class Mode { kTrain, kEval, kPredict };
// "train", "eval", "infer": TensorFlow's ModeKeys.
const char* ModeName(Mode mode);

// Numbers and words that determine a model ("hidden_units", "rate"): the program's own, passed on to the model
// function. Values are text; the function reads them.
using Params = std::map<std::string, std::string>;

struct ModelContext {
  Mode mode = Mode::kTrain;
  Params params;
  RunConfig config;  // resolved
};

// The results of one batch.
struct ModelOutputs {
  // By name, first dimension the batch: returned by Predict and read by metrics.
  Tensors predictions;
  // A scalar: the mean over the batch's rows. Needed in kTrain and kEval.
  torch::Tensor loss;
};

// The outputs of an export that a caller sees, and the steps that compute them outside of muster (export.h).
struct ExportOutput {
  std::string method;                    // "classify", "regress" or "predict"
  std::vector<std::string> predictions;  // names of ModelOutputs::predictions
};

// One step from features to predictions: an operation on tensors by name. docs/export.md lists the operations with
// their variables and arguments ("linear": weight, bias; "relu"; "softmax": dim; …).
struct ExportStep {
  std::string op;
  std::vector<std::string> inputs;               // features, or outputs of earlier steps
  std::string output;                            // a new name, or a prediction's
  std::map<std::string, std::string> variables;  // {"weight", "dnn.logits.weight"}
  std::map<std::string, double> arguments;       // {"dim", 1}
};

struct EstimatorSpec {
  // Owns the variables. Must have the same names and shapes in every mode.
  std::shared_ptr<torch::nn::Module> module;
  // Runs the module on a batch that is on the module's device. In kPredict the batch may have no labels.
  std::function<ModelOutputs(const Minibatch&)> forward;

  // For kTrain.
  OptimizerSpec optimizer;
  std::vector<std::shared_ptr<SessionHook>> training_hooks;
  std::vector<std::shared_ptr<SessionHook>> training_chief_hooks;
  std::shared_ptr<Scaffold> scaffold;  // may be null

  // For kEval. "loss" is always added: the mean of the batches' losses, in which each batch counts the same whatever
  // its rows, as in TensorFlow. Other names than "loss", "global_step" and "wall_time".
  std::map<std::string, std::shared_ptr<Metric>> eval_metrics;

  // For Estimator::Export.
  std::map<std::string, ExportOutput> export_outputs;
  // How predictions are computed from features, step by step, for users without muster (docs/export.md); empty: the
  // importer supplies a module of its own.
  std::vector<ExportStep> export_program;
};

// Called once for each Train, Evaluate, Predict and Export. May throw Error.
using ModelFn = std::function<EstimatorSpec(const ModelContext&)>;

// InvalidArgument (IsWrongConfiguration), naming what is missing: no module, no forward function; in kEval a metric
// that is null, or has a name that Evaluate itself uses.
[[nodiscard]] absl::Status CheckEstimatorSpec(const EstimatorSpec& spec, Mode mode);
// Returns the loss of a batch in kTrain and kEval. Throws Error (IsWrongConfiguration): there is none ("the model
// function returned no loss"), or it isn't a scalar (names its shape); InvalidArgument: in kEval it isn't finite. In
// kTrain the hooks check that (docs/estimator.md).
const torch::Tensor& LossOf(const ModelOutputs& outputs, Mode mode);

}  // namespace muster
