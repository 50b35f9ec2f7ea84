// What a user writes once to describe a model: a function that makes its module and says, for each of the three modes,
// what comes out of a batch, what the loss is, how it is trained and measured. TensorFlow's model_fn and EstimatorSpec;
// as there is no graph, the spec holds functions that are called once a batch. docs/estimator.md walks through one.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/estimator/model/metrics.h"
#include "muster/estimator/model/minibatch.h"
#include "muster/estimator/model/run_config.h"
#include "muster/optim/optimizer_spec.h"
#include "muster/train/hook/session_hook.h"
#include "muster/train/session/scaffold.h"

namespace muster {

enum class Mode { kTrain, kEval, kPredict };
// "train", "eval", "infer": TensorFlow's ModeKeys.
const char* ModeName(Mode mode);

// Numbers and words that a model is made by ("hidden_units", "rate"): the program's own, passed on to the model
// function. Values as text; the function reads them.
using Params = std::map<std::string, std::string>;

struct ModelContext {
  Mode mode = Mode::kTrain;
  Params params;
  RunConfig config;  // resolved
};

// What came of one batch.
struct ModelOutputs {
  // By name, first dimension the batch: what Predict hands out and metrics look at.
  Tensors predictions;
  // A scalar: the mean over the batch's rows. Needed in kTrain and kEval.
  torch::Tensor loss;
};

// Which outputs of an export a caller sees, and by what they can be computed outside of muster (export.h).
struct ExportOutput {
  std::string method;                    // "classify", "regress" or "predict"
  std::vector<std::string> predictions;  // names of ModelOutputs::predictions
};

// One step of how predictions follow from features: an operation on tensors by name. docs/export.md lists the
// operations with their variables and arguments ("linear": weight, bias; "relu"; "softmax": dim; …).
struct ExportStep {
  std::string op;
  std::vector<std::string> inputs;               // features, or outputs of earlier steps
  std::string output;                            // a new name, or that of a prediction
  std::map<std::string, std::string> variables;  // {"weight", "dnn.logits.weight"}
  std::map<std::string, double> arguments;       // {"dim", 1}
};

struct EstimatorSpec {
  // Owns the variables. The same names and shapes in every mode.
  std::shared_ptr<torch::nn::Module> module;
  // Runs the module on a batch that is on the module's device. In kPredict the batch may have no labels.
  std::function<ModelOutputs(const Minibatch&)> forward;

  // kTrain.
  OptimizerSpec optimizer;
  std::vector<std::shared_ptr<SessionHook>> training_hooks;
  std::vector<std::shared_ptr<SessionHook>> training_chief_hooks;
  std::shared_ptr<Scaffold> scaffold;  // may be null

  // kEval, beside "loss", which is always there: the mean of the batches' losses, each of which counts as much as any
  // other whatever its rows, as in TensorFlow. Names but "loss", "global_step" and "wall_time".
  std::map<std::string, std::shared_ptr<Metric>> eval_metrics;

  // For Estimator::Export.
  std::map<std::string, ExportOutput> export_outputs;
  // How predictions follow from features, step by step, for who has no muster (docs/export.md); empty: the importer
  // brings a module of its own.
  std::vector<ExportStep> export_program;
};

// Called once for each Train, Evaluate, Predict and Export. May throw Error.
using ModelFn = std::function<EstimatorSpec(const ModelContext&)>;

// InvalidArgument (IsWrongConfiguration), naming what is missing: no module, no forward function; in kEval a metric
// that is null, or that is called as what Evaluate says itself.
[[nodiscard]] absl::Status CheckEstimatorSpec(const EstimatorSpec& spec, Mode mode);
// The loss of a batch in kTrain and kEval. Throws Error (IsWrongConfiguration): there is none ("the model function
// returned no loss"), it isn't a scalar (its shape is said); InvalidArgument: in kEval it isn't finite. In kTrain that
// is the hooks' business (docs/estimator.md).
const torch::Tensor& LossOf(const ModelOutputs& outputs, Mode mode);

}  // namespace muster
