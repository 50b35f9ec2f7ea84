// An Estimator with everything that a run of it needs, and the ways to run it by name: contrib.learn's Experiment and
// learn_runner, with their arguments and defaults. docs/estimator.md has a table of both. Used by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/estimator/estimator.h"
#include "muster/estimator/exporter.h"
#include "muster/estimator/train_and_evaluate.h"

namespace muster {

struct ExperimentOptions {
  std::shared_ptr<Estimator> estimator;
  InputFn train_input_fn;
  InputFn eval_input_fn;
  // By their names: instead of the model's own.
  std::map<std::string, std::shared_ptr<Metric>> eval_metrics;
  std::optional<int64_t> train_steps;                        // the global step to train to; unset: until the input ends
  std::optional<int64_t> eval_steps = 100;                   // unset: until the input ends
  std::vector<std::shared_ptr<SessionHook>> train_monitors;  // hooks of training
  std::vector<std::shared_ptr<SessionHook>> eval_hooks;
  double eval_delay_secs = 120;
  double continuous_eval_throttle_secs = 60;
  std::optional<int64_t> min_eval_frequency = 1;  // 0: evaluated at the end alone
  // Worker i begins when the global step is int(8000 · ln(i + 1)); false: after min(60, 5·i) seconds.
  bool delay_workers_by_global_step = false;
  std::vector<std::shared_ptr<Exporter>> export_strategies;
  std::optional<int64_t> train_steps_per_iteration;  // of continuous_train_and_eval
  std::vector<std::shared_ptr<CheckpointSaverListener>> saving_listeners;
  bool checkpoint_and_export = false;
  std::function<bool(const EvalResults&)> continuous_eval_predicate_fn;  // false ends a continuous evaluation
};

class Experiment {
 public:
  // Throws Error (InvalidArgument, exit code 2): no estimator, no input function, a negative number; train_steps of 0.
  explicit Experiment(ExperimentOptions options);

  void Train(std::optional<double> delay_secs = std::nullopt);
  TrainAndEvaluateResults Evaluate(std::optional<double> delay_secs = std::nullopt, const std::string& name = {});
  TrainAndEvaluateResults ContinuousEval(std::optional<double> delay_secs = std::nullopt,
                                         std::optional<double> throttle_delay_secs = std::nullopt,
                                         bool evaluate_checkpoint_only_once = true);
  TrainAndEvaluateResults ContinuousEvalOnTrainData(std::optional<double> delay_secs = std::nullopt,
                                                    std::optional<double> throttle_delay_secs = std::nullopt);
  TrainAndEvaluateResults TrainAndEvaluate();
  TrainAndEvaluateResults ContinuousTrainAndEval();
  void RunStdServer();  // a ps
  TrainAndEvaluateResults LocalRun();
  TrainAndEvaluateResults Test();  // one step of training, one evaluation, an export

  Estimator& estimator() { return *options_.estimator; }

 private:
  const ExperimentOptions options_;
};

namespace learn_runner {

// Makes the experiment (`output_dir` is the model_dir that it is to use) and runs the schedule of that name: "train",
// "evaluate", "continuous_eval", "continuous_eval_on_train_data", "train_and_evaluate", "continuous_train_and_eval",
// "run_std_server", "local_run", "test". Empty: by the task: a process alone, a chief and a master train and evaluate,
// a worker trains, a ps serves, an evaluator evaluates continuously. Throws Error (exit code 2): no such schedule (with
// the nearest); an experiment whose estimator has another model_dir.
TrainAndEvaluateResults Run(const std::function<Experiment(const std::string& output_dir)>& experiment_fn,
                            const std::string& output_dir, const std::string& schedule = {});

}  // namespace learn_runner

}  // namespace muster
