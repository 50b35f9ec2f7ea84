#include "muster/estimator/canned/canned.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/wrong_configuration.h"
#include "muster/estimator/model/batch_rows.h"
#include "muster/estimator/model/head.h"
#include "muster/train/threads/error.h"

namespace muster {
namespace {

using HeadPointer = std::shared_ptr<const Head>;

// Runs before the Estimator's constructor, which otherwise sets up that an uncaught Error is printed as one line.
[[noreturn]] void RefuseCannedOption(const std::string& model, const std::string& problem) {
  HandleUncaughtErrors();
  throw Error(WrongOptionError(absl::StrCat(model, ": ", problem)));
}

void CheckCannedColumns(const std::string& model, const std::vector<FeatureColumn>& columns) {
  if (const absl::Status valid = CheckColumns(columns); !valid.ok())
    RefuseCannedOption(model, std::string(valid.message()));
}

HeadPointer ClassifierHead(const std::string& model, int64_t classes, const std::string& weight_feature) {
  if (classes < 2) RefuseCannedOption(model, absl::StrCat("n_classes is ", classes, "; accepted: at least 2"));
  return classes == 2 ? BinaryClassHead({weight_feature}) : MultiClassHead(classes, {weight_feature});
}

HeadPointer RegressorHead(const std::string& model, int64_t dimension, const std::string& weight_feature) {
  if (dimension < 1)
    RefuseCannedOption(model, absl::StrCat("label_dimension is ", dimension, "; accepted: at least 1"));
  return RegressionHead(dimension, {weight_feature});
}

bool HasNormalizer(const std::vector<FeatureColumn>& columns) {
  return std::ranges::any_of(columns, [](const FeatureColumn& column) { return column.normalizer != nullptr; });
}

// Adds steps that turn features of any type, [batch], [batch, d] or with more dimensions, into what ColumnOf returns.
// Returns the output name of each column.
std::vector<std::string> AddColumnSteps(const std::vector<FeatureColumn>& columns, std::vector<ExportStep>& program) {
  std::vector<std::string> outputs;
  for (const FeatureColumn& column : columns) {
    const std::string at = absl::StrCat("columns/", column.name);
    program.push_back(
        {.op = "unsqueeze", .inputs = {column.name}, .output = absl::StrCat(at, "/rows"), .arguments = {{"dim", 1}}});
    program.push_back({.op = "flatten",
                       .inputs = {absl::StrCat(at, "/rows")},
                       .output = absl::StrCat(at, "/flat"),
                       .arguments = {{"start_dim", 1}}});
    program.push_back({.op = "to_float", .inputs = {absl::StrCat(at, "/flat")}, .output = at});
    outputs.push_back(at);
  }
  return outputs;
}

void AddHeadSteps(const Head& head, std::vector<ExportStep>& program) {
  for (ExportStep& step : head.ExportProgram()) program.push_back(std::move(step));
}

// Common to all canned models; `logits` runs the module.
EstimatorSpec CannedSpec(const ModelContext& context, std::shared_ptr<torch::nn::Module> module,
                         const HeadPointer& head, std::function<torch::Tensor(const Minibatch&)> logits) {
  EstimatorSpec spec;
  spec.module = std::move(module);
  spec.forward = [mode = context.mode, head, logits = std::move(logits)](const Minibatch& minibatch) {
    if (mode == Mode::kPredict) return head->Outputs(logits(minibatch), {.features = minibatch.features});
    if (!minibatch.labels.defined())
      RefuseBatch(absl::StrCat("a batch of the input function has no labels, without which there is no loss (mode ",
                               ModeName(mode), ")"));
    return head->Outputs(logits(minibatch), minibatch);
  };
  spec.eval_metrics = head->EvalMetrics();
  spec.export_outputs = head->ExportOutputs();
  return spec;
}

class DnnModule final : public torch::nn::Module {
 public:
  DnnModule(int64_t inputs, const std::vector<int64_t>& hidden_units, int64_t outputs) : torch::nn::Module("Dnn") {
    const auto dnn = register_module("dnn", std::make_shared<torch::nn::Module>("dnn"));
    for (const int64_t units : hidden_units) {
      layers_.push_back(AddLayer(*dnn, absl::StrCat("hiddenlayer_", layers_.size()), inputs, units));
      inputs = units;
    }
    layers_.push_back(AddLayer(*dnn, "logits", inputs, outputs));
  }

  torch::Tensor Logits(torch::Tensor values, const DnnOptions& options, bool trains) {
    for (size_t i = 0; i + 1 < layers_.size(); ++i) {
      values = layers_[i]->forward(values);
      values = options.activation ? options.activation(values) : values.relu();
      if (trains && options.dropout > 0) values = torch::dropout(values, options.dropout, true);
    }
    return layers_.back()->forward(values);
  }

 private:
  // tf.layers.dense with its glorot_uniform kernel.
  static torch::nn::Linear AddLayer(torch::nn::Module& parent, const std::string& name, int64_t inputs,
                                    int64_t outputs) {
    torch::nn::Linear layer(inputs, outputs);
    torch::nn::init::xavier_uniform_(layer->weight);
    torch::nn::init::zeros_(layer->bias);
    parent.register_module(name, layer);
    return layer;
  }

  std::vector<torch::nn::Linear> layers_;  // the hidden ones, then the logits'
};

std::vector<ExportStep> DnnProgram(const DnnOptions& options, const Head& head) {
  std::vector<ExportStep> program;
  if (options.activation || HasNormalizer(options.feature_columns)) return program;
  const std::vector<std::string> columns = AddColumnSteps(options.feature_columns, program);
  program.push_back({.op = "concat", .inputs = columns, .output = "input_layer", .arguments = {{"dim", 1}}});
  std::string values = "input_layer";
  const auto add_layer = [&](const std::string& layer, const std::string& output) {
    program.push_back(
        {.op = "linear",
         .inputs = {values},
         .output = output,
         .variables = {{"weight", absl::StrCat(layer, ".weight")}, {"bias", absl::StrCat(layer, ".bias")}}});
  };
  for (size_t i = 0; i < options.hidden_units.size(); ++i) {
    const std::string layer = absl::StrCat("dnn.hiddenlayer_", i);
    add_layer(layer, layer);
    values = absl::StrCat(layer, "/activation");
    program.push_back({.op = "relu", .inputs = {layer}, .output = values});
  }
  add_layer("dnn.logits", "logits");
  AddHeadSteps(head, program);
  return program;
}

EstimatorSpec DnnSpec(const std::shared_ptr<const DnnOptions>& options, const HeadPointer& head,
                      const ModelContext& context) {
  int64_t inputs = 0;
  for (const FeatureColumn& column : options->feature_columns) inputs += column.dimension;
  const auto module = std::make_shared<DnnModule>(inputs, options->hidden_units, head->logits_dimension());
  EstimatorSpec spec = CannedSpec(
      context, module, head, [module, options, trains = context.mode == Mode::kTrain](const Minibatch& minibatch) {
        return module->Logits(InputLayer(minibatch, options->feature_columns), *options, trains);
      });
  // TensorFlow 1 has no epsilon there; beside the root of 0.1 this one changes no float.
  spec.optimizer =
      options->optimizer.value_or(Adagrad({.learning_rate = 0.05, .initial_accumulator = 0.1, .epsilon = 1e-30}));
  spec.export_program = DnnProgram(*options, *head);
  return spec;
}

ModelFn MakeDnn(const std::string& model, DnnOptions options, HeadPointer head) {
  CheckCannedColumns(model, options.feature_columns);
  for (const int64_t units : options.hidden_units)
    if (units < 1) RefuseCannedOption(model, absl::StrCat("hidden_units has ", units, "; accepted: at least 1"));
  if (!(options.dropout >= 0 && options.dropout < 1))
    RefuseCannedOption(model, absl::StrCat("dropout is ", options.dropout, "; accepted: at least 0 and below 1"));
  options.feature_columns = ColumnsByName(std::move(options.feature_columns));
  return [options = std::make_shared<const DnnOptions>(std::move(options)),
          head = std::move(head)](const ModelContext& context) { return DnnSpec(options, head, context); };
}

class LinearModule final : public torch::nn::Module {
 public:
  LinearModule(const std::vector<FeatureColumn>& columns, int64_t outputs) : torch::nn::Module("Linear") {
    const auto linear = register_module("linear", std::make_shared<torch::nn::Module>("linear"));
    bias_ = linear->register_parameter("bias", torch::zeros({outputs}));
    for (const FeatureColumn& column : columns) {
      const auto holder = linear->register_module(column.name, std::make_shared<torch::nn::Module>(column.name));
      weights_.push_back(holder->register_parameter("weight", torch::zeros({outputs, column.dimension})));
    }
  }

  torch::Tensor Logits(const Minibatch& minibatch, const std::vector<FeatureColumn>& columns) {
    torch::Tensor logits = torch::linear(ColumnOf(minibatch, columns[0]), weights_[0], bias_);
    for (size_t i = 1; i < columns.size(); ++i)
      logits = logits + torch::linear(ColumnOf(minibatch, columns[i]), weights_[i]);
    return logits;
  }

 private:
  torch::Tensor bias_;                  // [outputs]
  std::vector<torch::Tensor> weights_;  // one for each column, [outputs, dimension]
};

std::vector<ExportStep> LinearProgram(const LinearOptions& options, const Head& head) {
  std::vector<ExportStep> program;
  if (HasNormalizer(options.feature_columns)) return program;
  const std::vector<std::string> columns = AddColumnSteps(options.feature_columns, program);
  std::vector<std::string> parts;
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::string layer = absl::StrCat("linear.", options.feature_columns[i].name);
    ExportStep step = {.op = "linear",
                       .inputs = {columns[i]},
                       .output = layer,
                       .variables = {{"weight", absl::StrCat(layer, ".weight")}}};
    if (i == 0) step.variables["bias"] = "linear.bias";
    program.push_back(std::move(step));
    parts.push_back(layer);
  }
  program.push_back({.op = "add", .inputs = parts, .output = "logits"});
  AddHeadSteps(head, program);
  return program;
}

EstimatorSpec LinearSpec(const std::shared_ptr<const LinearOptions>& options, const HeadPointer& head,
                         const ModelContext& context) {
  const auto module = std::make_shared<LinearModule>(options->feature_columns, head->logits_dimension());
  EstimatorSpec spec = CannedSpec(context, module, head, [module, options](const Minibatch& minibatch) {
    return module->Logits(minibatch, options->feature_columns);
  });
  const double rate = std::min(0.2, 1 / std::sqrt(static_cast<double>(options->feature_columns.size())));
  spec.optimizer = options->optimizer.value_or(Ftrl({.learning_rate = rate}));
  spec.export_program = LinearProgram(*options, *head);
  return spec;
}

ModelFn MakeLinear(const std::string& model, LinearOptions options, HeadPointer head) {
  CheckCannedColumns(model, options.feature_columns);
  for (const FeatureColumn& column : options.feature_columns)
    if (column.name.find('.') != std::string::npos)
      RefuseCannedOption(model,
                         absl::StrCat("the column '", column.name,
                                      "' has a dot in its name, which is to name the variable linear.NAME.weight; "
                                      "accepted: names without dots (rename the feature with Dataset::Map)"));
  options.feature_columns = ColumnsByName(std::move(options.feature_columns));
  return [options = std::make_shared<const LinearOptions>(std::move(options)),
          head = std::move(head)](const ModelContext& context) { return LinearSpec(options, head, context); };
}

}  // namespace

DNNClassifier::DNNClassifier(const DnnOptions& options, RunConfig config)
    : Estimator(
          MakeDnn("DNNClassifier", options, ClassifierHead("DNNClassifier", options.n_classes, options.weight_feature)),
          std::move(config), {}, options.warm_start_from) {}

DNNRegressor::DNNRegressor(const DnnOptions& options, RunConfig config)
    : Estimator(MakeDnn("DNNRegressor", options,
                        RegressorHead("DNNRegressor", options.label_dimension, options.weight_feature)),
                std::move(config), {}, options.warm_start_from) {}

LinearClassifier::LinearClassifier(const LinearOptions& options, RunConfig config)
    : Estimator(MakeLinear("LinearClassifier", options,
                           ClassifierHead("LinearClassifier", options.n_classes, options.weight_feature)),
                std::move(config), {}, options.warm_start_from) {}

LinearRegressor::LinearRegressor(const LinearOptions& options, RunConfig config)
    : Estimator(MakeLinear("LinearRegressor", options,
                           RegressorHead("LinearRegressor", options.label_dimension, options.weight_feature)),
                std::move(config), {}, options.warm_start_from) {}

}  // namespace muster
