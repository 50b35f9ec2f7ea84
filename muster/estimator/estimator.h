// A model that is described once, and trained, evaluated, used for predictions and exported by the same few calls on a
// laptop and on a cluster: TensorFlow's tf.estimator.Estimator, its arguments, order of hooks, log lines and model_dir.
// docs/estimator.md describes it. Throws Error (train/threads/error.h), like the other classes of the façade. Used by
// one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/estimator/export.h"
#include "muster/estimator/model/input_fn.h"
#include "muster/estimator/model/model_fn.h"
#include "muster/estimator/warm_start.h"
#include "muster/train/hooks/checkpoint_saver_listener.h"

namespace muster {

class Server;

struct TrainOptions {
  std::vector<std::shared_ptr<SessionHook>> hooks;
  // At most one: train `steps` more steps, or until the global step is `max_steps`. Neither: until the input ends.
  std::optional<int64_t> steps;
  std::optional<int64_t> max_steps;
  std::vector<std::shared_ptr<CheckpointSaverListener>> saving_listeners;
};

struct EvaluateOptions {
  std::optional<int64_t> steps;  // batches; unset: until the input ends
  // Called for each batch as for a run of a session that has no client, algorithm or saver (docs/estimator.md).
  std::vector<std::shared_ptr<SessionHook>> hooks;
  std::string checkpoint_path;  // empty: the latest of model_dir
  std::string name;             // results go to model_dir/eval_NAME; empty: model_dir/eval
};

struct PredictOptions {
  std::vector<std::string> predict_keys;  // empty: all
  std::string checkpoint_path;
};

// The result of Evaluate: metrics by name, with "loss" and "global_step".
using EvalResults = std::map<std::string, double>;

class Estimator {
 public:
  // Resolves the config and throws its errors. Creates nothing yet. From here on the process's log is the task's, and
  // an uncaught Error ends it in order (train/threads/error.h).
  explicit Estimator(ModelFn model_fn, RunConfig config = {}, Params params = {},
                     std::optional<WarmStartSettings> warm_start_from = std::nullopt);
  virtual ~Estimator();
  Estimator(const Estimator&) = delete;
  Estimator& operator=(const Estimator&) = delete;

  // Blocks until trained. In a cluster: this worker's or chief's part; call it once per process, because its server has
  // one session. If max_steps was reached before, it logs that and returns. Throws Error (IsWrongConfiguration) on a ps
  // and on an evaluator, which don't train.
  Estimator& Train(const InputFn& input_fn, const TrainOptions& options = {});
  // Evaluates a checkpoint in this process; torch's generators are unchanged afterwards. Writes the results as
  // summaries and a line of metrics.jsonl. May also be called in the middle of Train, by a hook or a saving listener.
  // Throws Error: FailedPrecondition, there is no checkpoint yet, or it is of another model.
  EvalResults Evaluate(const InputFn& input_fn, const EvaluateOptions& options = {});
  // Calls `each` with the predictions of one row after the other (without the batch's dimension), using a checkpoint as
  // Evaluate does. Throws Error: InvalidArgument, a key that isn't among the predictions (lists those that are).
  void Predict(const InputFn& input_fn, const std::function<void(const Tensors&)>& each,
               const PredictOptions& options = {});
  // Variables of the latest checkpoint, "global_step" (int64 []) among them. Throws Error: FailedPrecondition, there is
  // none; NotFound, no variable of that name.
  std::vector<std::string> VariableNames() const;
  torch::Tensor VariableValue(const std::string& name) const;
  // Empty: there is no checkpoint.
  std::string LatestCheckpoint() const;
  // The folder with the results of evaluation `name`.
  std::string EvalDir(const std::string& name = {}) const;
  // Writes the weights and how to use them into a new folder below `export_dir_base`, named by the time. Returns that
  // folder. See docs/export.md.
  std::string Export(const std::string& export_dir_base, const ExportInputs& inputs,
                     const std::string& checkpoint_path = {});

  const std::string& model_dir() const { return config_.model_dir; }
  const RunConfig& config() const { return config_; }  // resolved
  const Params& params() const { return params_; }
  EstimatorSpec MakeSpec(Mode mode) const;  // calls the model function and checks its result

 private:
  Server& KeepServer();
  InputContext TrainingInputContext(Server& server) const;

  const ModelFn model_fn_;
  const RunConfig config_;
  const Params params_;
  const std::optional<WarmStartSettings> warm_start_;
  // On a task of a cluster, from its first training on; on an evaluator, from its first evaluation on.
  std::unique_ptr<Server> server_;
  const torch::nn::Module* in_training_ = nullptr;  // while Train runs
};

}  // namespace muster
