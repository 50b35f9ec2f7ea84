// An Estimator with everything a run of it needs, and the ways to run it: contrib.learn's Experiment
// (contrib/learn/python/learn/experiment.py), with its arguments and defaults; learn_runner.h runs one by the name of a
// schedule. docs/learn_runner.md lists both in tables. Used by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/estimator/distributed/exporter.h"
#include "muster/estimator/distributed/train_and_evaluate.h"
#include "muster/estimator/estimator.h"

namespace muster {

struct ExperimentOptions {
  std::shared_ptr<Estimator> estimator;
  InputFn train_input_fn;
  InputFn eval_input_fn;
  // By their names; replace the model's own.
  std::map<std::string, std::shared_ptr<Metric>> eval_metrics;
  std::optional<int64_t> train_steps;                        // the global step to train to; unset: until the input ends
  std::optional<int64_t> eval_steps = 100;                   // batches; unset: until the input ends
  std::vector<std::shared_ptr<SessionHook>> train_monitors;  // hooks of training
  std::vector<std::shared_ptr<SessionHook>> eval_hooks;
  double eval_delay_secs = 120;               // evaluate and continuous_eval: before the first evaluation
  double continuous_eval_throttle_secs = 60;  // at least, from one evaluation's start to the next's
  // A continuous evaluation gives up after this long without a new checkpoint (exit code 138).
  double continuous_eval_patience_secs = 86400;
  // train_and_evaluate evaluates a checkpoint that is this many steps newer than the last one evaluated; 0: only the
  // last checkpoint, at the end. Unset: 1, every checkpoint.
  std::optional<int64_t> min_eval_frequency;
  // Worker i, unless it is the chief, makes its first step when the global step is StartStepOfWorker(i).
  bool delay_workers_by_global_step = false;
  // Otherwise it begins after min(60, i · worker_delay_secs) seconds. contrib.learn's number is 5, so that the chief
  // has made the model ready; here a worker is told when it is ready, and needs no delay.
  double worker_delay_secs = 0;
  std::vector<std::shared_ptr<Exporter>> export_strategies;  // called at the end of train_and_evaluate
  bool checkpoint_and_export = false;                        // also call them after each evaluation in training
  // For continuous_train_and_eval. Unset: a tenth of train_steps, or 1000.
  std::optional<int64_t> train_steps_per_iteration;
  std::vector<std::shared_ptr<CheckpointSaverListener>> saving_listeners;
  std::function<bool(const EvalResults&)> continuous_eval_predicate_fn;  // false ends a continuous evaluation

  // Waits for the duration; returns false if a stop was requested. Empty: a wait that Ctrl-C or SIGTERM ends. For
  // tests, like the clock.
  std::function<bool(absl::Duration)> wait;
  const Clock* clock = nullptr;  // null: the real one
};

// int(8000 · ln(index + 1)): 0, 5545, 8788, 11090, …
int64_t StartStepOfWorker(int index);

class CheckpointEvaluation;

// Each method blocks until it is done. It throws the Estimator's Errors, or Error with exit code 2 if this task can't
// do what is asked. Ctrl-C ends it after the checkpoint of the current step, without an evaluation.
class Experiment {
 public:
  // Throws Error (exit code 2): no estimator, no input function, a null hook or metric, a negative number, train_steps
  // or eval_steps of 0.
  explicit Experiment(ExperimentOptions options);

  // Makes this task's part of the training: the chief's or a worker's. `delay_secs` replaces the options' delays.
  void Train(std::optional<double> delay_secs = std::nullopt);
  // Evaluates the latest checkpoint once; results are in model_dir/eval_NAME.
  TrainAndEvaluateResults Evaluate(std::optional<double> delay_secs = std::nullopt,
                                   const std::string& name = "one_pass");
  // Evaluates each checkpoint as it comes, until train_steps is evaluated; results are in model_dir/eval_continuous. If
  // Ctrl-C ends it, returns the results so far.
  TrainAndEvaluateResults ContinuousEval(std::optional<double> delay_secs = std::nullopt,
                                         std::optional<double> throttle_delay_secs = std::nullopt,
                                         bool evaluate_checkpoint_only_once = true);
  // The same on the training's input, without exports; results are in model_dir/eval_continuous_on_train_data.
  TrainAndEvaluateResults ContinuousEvalOnTrainData(std::optional<double> delay_secs = std::nullopt,
                                                    std::optional<double> throttle_delay_secs = std::nullopt);
  // On the chief and in a process without a cluster: trains, evaluates checkpoints during the training, and the last
  // one; then exports. Results are in model_dir/eval. On another task its part of that: Train, RunStdServer or
  // ContinuousEval.
  TrainAndEvaluateResults TrainAndEvaluate();
  // Trains train_steps_per_iteration steps and evaluates, alternately; while one runs, the other's memory is free. For
  // a process without a cluster. Ends at train_steps, at the input's end, or when continuous_eval_predicate_fn returns
  // false.
  TrainAndEvaluateResults ContinuousTrainAndEval();
  // On a ps: serves until training has ended.
  void RunStdServer();
  // TrainAndEvaluate in a process without a cluster, evaluated at the end only.
  TrainAndEvaluateResults LocalRun();
  // One step of training, an evaluation of one batch, the exports. For a process without a cluster.
  TrainAndEvaluateResults Test();

  Estimator& estimator() { return *options_.estimator; }

 private:
  const TaskConfig& task() const { return *options_.estimator->config().task; }
  // Returns false if a stop was requested.
  bool Wait(double secs, const char* what) const;
  void RefuseCluster(const char* schedule) const;
  void SayResuming() const;
  EvalSpec EvalSpecOf(const InputFn& input_fn, const std::string& name) const;
  TrainAndEvaluateResults EvaluateAsTheyCome(const EvalSpec& spec, std::optional<double> delay_secs,
                                             std::optional<double> throttle_delay_secs, bool only_once);
  TrainAndEvaluateResults TrainThenEvaluate(int64_t min_eval_frequency);
  // Makes a listener of the training that evaluates every so many steps.
  std::shared_ptr<CheckpointSaverListener> EvaluateOnTheWay(CheckpointEvaluation& evaluation, int64_t every) const;

  const ExperimentOptions options_;
  const std::shared_ptr<Estimator> evaluated_;  // options_.estimator, with eval_metrics if there are any
};

}  // namespace muster
