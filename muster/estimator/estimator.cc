#include "muster/estimator/estimator.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/clock.h"
#include "muster/base/log.h"
#include "muster/base/wrong_configuration.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/cluster/identity/environment.h"
#include "muster/estimator/checkpointed_model.h"
#include "muster/estimator/evaluation.h"
#include "muster/estimator/kept_random_state.h"
#include "muster/estimator/training_end.h"
#include "muster/estimator/training_run.h"
#include "muster/summary/step_summaries.h"
#include "muster/torch_bridge/facade/training.h"
#include "muster/torch_bridge/module/random_state.h"
#include "muster/torch_bridge/module/torch_dtype.h"
#include "muster/torch_bridge/module/torch_status.h"
#include "muster/train/threads/error.h"

namespace muster {
namespace {

constexpr char kGlobalStepName[] = "global_step";

RunConfig ResolvedRunConfig(RunConfig config) {
  HandleUncaughtErrors();
  const Environment environment = ReadEnvironment();
  RunConfig resolved = ValueOrThrow(ResolveRunConfig(std::move(config), environment));
  SetUpLog(environment.run_id ? "" : resolved.task->task().ToString());
  LogInfo("Using config: ", RunConfigText(resolved));
  return resolved;
}

void CheckStepsAboveZero(const char* name, const std::optional<int64_t>& steps) {
  if (steps && *steps <= 0) throw Error(WrongOptionError(absl::StrCat("Must specify ", name, " > 0, given: ", *steps)));
}

void CheckTrainCall(const TaskConfig& task, const TrainOptions& options) {
  if (task.is_ps())
    throw Error(WrongConfigurationError(
        absl::StrCat("this task is ", task.task().ToString(),
                     ", which serves and doesn't train: call TrainAndEvaluate, or Server::Join")));
  if (task.is_evaluator())
    throw Error(
        WrongConfigurationError("this task is the evaluator, which doesn't train: call TrainAndEvaluate, or Evaluate"));
  CheckStepsAboveZero("steps", options.steps);
  CheckStepsAboveZero("max_steps", options.max_steps);
  if (options.steps && options.max_steps)
    throw Error(WrongOptionError(
        absl::StrCat("Can not provide both steps (", *options.steps, ") and max_steps (", *options.max_steps, ").")));
}

std::string EvaluationTime(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixSeconds(absl::ToUnixSeconds(time)), absl::UTCTimeZone());
}

// Passes the requested predictions to `each`, one row after the other.
void HandOutPredictions(const Tensors& predictions, const std::vector<std::string>& keys,
                        const std::function<void(const Tensors&)>& each) {
  const auto name_of = [](std::string* out, const auto& prediction) { out->append(prediction.first); };
  Tensors asked;
  for (const auto& [name, values] : predictions)
    if (keys.empty() || std::find(keys.begin(), keys.end(), name) != keys.end()) asked.emplace(name, values);
  for (const std::string& key : keys)
    if (asked.count(key) == 0)
      throw Error(
          absl::InvalidArgumentError(absl::StrCat("predict_keys has '", key, "', and the model's predictions are ",
                                                  absl::StrJoin(predictions, ", ", name_of))));
  if (asked.empty()) throw Error(absl::InvalidArgumentError("the model function returned no predictions"));
  const torch::Tensor& first = asked.begin()->second;
  for (const auto& [name, values] : asked)
    if (values.dim() == 0 || first.dim() == 0 || values.size(0) != first.size(0))
      throw Error(absl::InvalidArgumentError(absl::StrCat(
          "Batch length of predictions should be same: '", asked.begin()->first, "' has shape [",
          absl::StrJoin(first.sizes(), ","), "], and '", name, "' [", absl::StrJoin(values.sizes(), ","), "]")));
  for (int64_t row = 0; row < first.size(0); ++row) {
    Tensors one;
    for (const auto& [name, values] : asked) one.emplace(name, values[row]);
    each(one);
  }
}

}  // namespace

Estimator::Estimator(ModelFn model_fn, RunConfig config, Params params,
                     std::optional<WarmStartSettings> warm_start_from)
    : model_fn_(std::move(model_fn)),
      config_(ResolvedRunConfig(std::move(config))),
      params_(std::move(params)),
      warm_start_(std::move(warm_start_from)) {
  if (!model_fn_) throw Error(WrongOptionError("model_fn must be provided to Estimator."));
}

Estimator::~Estimator() = default;

EstimatorSpec Estimator::MakeSpec(Mode mode) const {
  LogInfo("Calling model_fn.");
  EstimatorSpec spec = ValueOrThrow(CatchTorch("the model function", [&]() -> absl::StatusOr<EstimatorSpec> {
    return model_fn_({mode, params_, config_});
  }));
  LogInfo("Done calling model_fn.");
  ThrowIfError(CheckEstimatorSpec(spec, mode));
  if (in_training_ != nullptr && spec.module.get() == in_training_)
    throw Error(
        WrongOptionError(absl::StrCat("the model function returned, for mode ", ModeName(mode),
                                      ", the very module that is being trained: it must make a new one in each call")));
  return spec;
}

// Returns the one server of a task of a cluster: a server has one session, and the ps know this task. A process without
// a cluster makes another server for each training.
Server& Estimator::KeepServer() {
  if (!server_) server_ = std::make_unique<Server>(*config_.task, config_.node);
  return *server_;
}

// The one place that knows how the workers share the input.
InputContext Estimator::TrainingInputContext(Server& server) const {
  const TaskConfig& task = *config_.task;
  InputContext context;
  context.share = [&server](int64_t rows, int64_t rows_per_unit, int64_t epochs) {
    return server.OpenWorkQueue("input", {.rows = rows, .rows_per_unit = rows_per_unit, .epochs = epochs});
  };
  const std::vector<TaskId> workers = task.worker_tasks();
  const auto me = std::find(workers.begin(), workers.end(), task.task());
  if (!task.distributed() || me == workers.end()) return context;
  context.num_input_pipelines = workers.size();
  context.input_pipeline_id = static_cast<size_t>(me - workers.begin());
  return context;
}

Estimator& Estimator::Train(const InputFn& input_fn, const TrainOptions& options) {
  const TaskConfig& task = *config_.task;
  CheckTrainCall(task, options);
  if (in_training_ != nullptr) throw Error(absl::FailedPreconditionError("Train within a Train of the same Estimator"));
  if (options.max_steps && StepOfCheckpointPath(LatestCheckpoint()) >= *options.max_steps) {
    LogInfo("Skipping training since max_steps has already saved.");
    // The ps of a cluster wait to hear from every worker; a session without steps tells them.
    if (!task.distributed()) return *this;
  }
  std::unique_ptr<Server> own;
  if (!task.distributed()) own = std::make_unique<Server>(task, config_.node);
  Server& server = own ? *own : KeepServer();
  InputReader input(input_fn, TrainingInputContext(server), "the training input function");
  if (config_.seed) SeedTorch(*config_.seed);
  EstimatorSpec spec = MakeSpec(Mode::kTrain);
  // All workers begin with the same weights, then draw different numbers.
  if (config_.seed && task.global_id() > 0) SeedTorch(*config_.seed, static_cast<uint64_t>(task.global_id()));
  in_training_ = spec.module.get();
  const absl::Cleanup trained = [this] { in_training_ = nullptr; };
  RunTraining({.server = server,
               .config = config_,
               .spec = std::move(spec),
               .input = input,
               .options = options,
               .warm_start = warm_start_});
  return *this;
}

EvalResults Estimator::Evaluate(const InputFn& input_fn, const EvaluateOptions& options) {
  CheckStepsAboveZero("steps", options.steps);
  if (config_.task->is_evaluator()) KeepServer();  // for its status page, trace and threads
  const torch::Device device = DeviceOf(config_);
  const auto checkpoint = OpenCheckpoint({.model_dir = model_dir(), .checkpoint_path = options.checkpoint_path});
  const KeptRandomState kept(config_.seed, device);
  InputReader input(input_fn, {}, "the evaluation's input function");
  EstimatorSpec spec = MakeSpec(Mode::kEval);
  LogInfo("Starting evaluation at ", EvaluationTime(RealClock().Now()));
  const CheckpointedModel model(std::move(spec), device, *checkpoint);
  const std::string eval_dir = EvalDir(options.name);
  const auto summaries = ValueOrThrow(EventFileWriter::Open(PosixFileSystem(), RealClock(), eval_dir, {}));
  EvalResults results = RunEvaluation(model, input, options, *summaries);
  const absl::Time now = RealClock().Now();
  LogInfo("Finished evaluation at ", EvaluationTime(now));
  LogInfo("Saving dict for global step ", model.global_step(), ": ", EvalResultsText(results));
  ThrowIfError(WriteEvalResults(PosixFileSystem(), now, eval_dir, results, *summaries));
  ThrowIfError(summaries->Close());
  return results;
}

void Estimator::Predict(const InputFn& input_fn, const std::function<void(const Tensors&)>& each,
                        const PredictOptions& options) {
  const torch::Device device = DeviceOf(config_);
  const auto checkpoint = OpenCheckpoint({.model_dir = model_dir(), .checkpoint_path = options.checkpoint_path});
  const KeptRandomState kept(config_.seed, device);
  InputReader input(input_fn, {}, "the prediction's input function");
  const CheckpointedModel model(MakeSpec(Mode::kPredict), device, *checkpoint);
  StepSummaries unwritten;
  for (Minibatch minibatch; input.Next(minibatch);) {
    const auto outputs = [&] {
      const StepSummaries::Scope registering(unwritten, /*wanted=*/false);
      return model.Run(minibatch.To(device));
    }();
    HandOutPredictions(outputs.predictions, options.predict_keys, each);
  }
}

std::vector<std::string> Estimator::VariableNames() const {
  const auto checkpoint = OpenCheckpoint({.model_dir = model_dir(), .verify_checksums = false});
  std::vector<std::string> names = {kGlobalStepName};
  for (const ManifestVariable& variable : checkpoint->manifest().variables) names.push_back(variable.name);
  return names;
}

torch::Tensor Estimator::VariableValue(const std::string& name) const {
  const auto checkpoint = OpenCheckpoint({.model_dir = model_dir(), .verify_checksums = false});
  const Manifest& manifest = checkpoint->manifest();
  const ManifestVariable* variable = manifest.Find(name);
  if (variable == nullptr && name == kGlobalStepName) return torch::tensor(manifest.global_step, torch::kInt64);
  if (variable == nullptr)
    throw Error(absl::NotFoundError(absl::StrCat("checkpoint ", checkpoint->path(), " has no variable '", name,
                                                 "'; it has ", absl::StrJoin(VariableNames(), ", "))));
  torch::Tensor value = torch::empty(variable->shape, TorchDType(variable->dtype));
  ThrowIfError(checkpoint->ReadVariable(name, {static_cast<std::byte*>(value.mutable_data_ptr()), value.nbytes()}));
  return value;
}

std::string Estimator::LatestCheckpoint() const {
  return ValueOrThrow(muster::LatestCheckpoint(PosixFileSystem(), model_dir(), {.verify_checksums = false}))
      .value_or("");
}

std::string Estimator::EvalDir(const std::string& name) const {
  return JoinPath(model_dir(), name.empty() ? "eval" : absl::StrCat("eval_", name));
}

std::string Estimator::Export(const std::string& export_dir_base, const ExportInputs& inputs,
                              const std::string& checkpoint_path) {
  const auto checkpoint = OpenCheckpoint({.model_dir = model_dir(), .checkpoint_path = checkpoint_path});
  const KeptRandomState kept(config_.seed, torch::kCPU);
  const EstimatorSpec spec = MakeSpec(Mode::kPredict);
  return ValueOrThrow(WriteExport(PosixFileSystem(), export_dir_base, RealClock().Now(), *checkpoint, spec, inputs));
}

}  // namespace muster
