#include "muster/estimator/tensorflow/experiment.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/os/stop_signal.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/estimator/distributed/checkpoint_evaluation.h"
#include "muster/estimator/distributed/evaluator.h"
#include "muster/estimator/distributed/wait_until_stopped.h"
#include "muster/estimator/training_end.h"
#include "muster/store/client/store_client.h"
#include "muster/train/hooks/global_step_waiter.h"
#include "muster/train/threads/error.h"

namespace muster {
namespace {

constexpr double kLongestWorkerDelay = 60;      // seconds
constexpr int64_t kStepsOfAnIteration = 1000;   // if no number is given
constexpr int64_t kIterationsOfATraining = 10;  // if train_steps is given

absl::Status CheckSteps(const char* field, const std::optional<int64_t>& steps, int64_t least) {
  if (!steps || *steps >= least) return absl::OkStatus();
  return WrongOptionError(
      absl::StrCat("Experiment: ", field, " is ", *steps, "; accepted: a whole number from ", least, ", or unset"));
}

absl::Status CheckSecs(const char* field, double secs) {
  if (secs >= 0 && std::isfinite(secs)) return absl::OkStatus();
  return WrongOptionError(absl::StrCat("Experiment: ", field, " is ", secs, "; accepted: seconds from 0"));
}

template <typename Thing>
absl::Status CheckNoNull(const char* field, const std::vector<std::shared_ptr<Thing>>& things) {
  for (size_t i = 0; i < things.size(); ++i) {
    if (things[i] == nullptr) return WrongOptionError(absl::StrCat("Experiment: ", field, "[", i, "] is null"));
  }
  return absl::OkStatus();
}

absl::Status CheckExperimentOptions(const ExperimentOptions& options) {
  if (options.estimator == nullptr) return WrongOptionError("Experiment: there is no estimator");
  if (!options.train_input_fn) return WrongOptionError("Experiment: there is no train_input_fn");
  if (!options.eval_input_fn) return WrongOptionError("Experiment: there is no eval_input_fn");
  for (const auto& [name, metric] : options.eval_metrics) {
    if (metric == nullptr) return WrongOptionError(absl::StrCat("Experiment: eval_metrics \"", name, "\" is null"));
  }
  RETURN_IF_ERROR(CheckNoNull("train_monitors", options.train_monitors));
  RETURN_IF_ERROR(CheckNoNull("eval_hooks", options.eval_hooks));
  RETURN_IF_ERROR(CheckNoNull("export_strategies", options.export_strategies));
  RETURN_IF_ERROR(CheckNoNull("saving_listeners", options.saving_listeners));
  RETURN_IF_ERROR(CheckSteps("train_steps", options.train_steps, 1));
  RETURN_IF_ERROR(CheckSteps("eval_steps", options.eval_steps, 1));
  RETURN_IF_ERROR(CheckSteps("min_eval_frequency", options.min_eval_frequency, 0));
  RETURN_IF_ERROR(CheckSteps("train_steps_per_iteration", options.train_steps_per_iteration, 1));
  RETURN_IF_ERROR(CheckSecs("eval_delay_secs", options.eval_delay_secs));
  RETURN_IF_ERROR(CheckSecs("continuous_eval_throttle_secs", options.continuous_eval_throttle_secs));
  RETURN_IF_ERROR(CheckSecs("continuous_eval_patience_secs", options.continuous_eval_patience_secs));
  return CheckSecs("worker_delay_secs", options.worker_delay_secs);
}

ExperimentOptions CheckedExperimentOptions(ExperimentOptions options) {
  ThrowIfError(CheckExperimentOptions(options));
  return options;
}

// The same model in the same model_dir, measured by the experiment's metrics.
std::shared_ptr<Estimator> WithExperimentMetrics(const ExperimentOptions& options) {
  if (options.eval_metrics.empty()) return options.estimator;
  const ModelFn model_fn = [estimator = options.estimator,
                            metrics = options.eval_metrics](const ModelContext& context) {
    EstimatorSpec spec = estimator->MakeSpec(context.mode);
    spec.eval_metrics = metrics;
    return spec;
  };
  return std::make_shared<Estimator>(model_fn, options.estimator->config(), options.estimator->params());
}

// Returns false if a stop was requested meanwhile.
bool TrainUnlessSignalled(const std::function<void()>& train) {
  const StopSignal signal([] {});
  train();
  if (signal.raised()) LogInfo("Stopped: the last checkpoint is not evaluated.");
  return !signal.raised();
}

// Calls `evaluate` after a save that is at least `every` steps newer than the last one it was called for, or than the
// first save, which a session makes before it trains.
class ExperimentListener final : public CheckpointSaverListener {
 public:
  ExperimentListener(int64_t every, std::function<void()> evaluate) : every_(every), evaluate_(std::move(evaluate)) {}

  absl::StatusOr<AfterSaving> AfterSave(const SessionContext& session, int64_t global_step) override {
    if (!last_) last_ = global_step;
    if (global_step - *last_ >= every_) {
      last_ = global_step;
      const WorkerProgress::Busy busy(session.client->progress(), "evaluating");
      evaluate_();
    }
    return AfterSaving::kContinue;
  }

 private:
  const int64_t every_;  // at least 1
  const std::function<void()> evaluate_;
  std::optional<int64_t> last_;
};

int64_t StepOfLatestCheckpoint(const Estimator& estimator) {
  return std::max<int64_t>(0, StepOfCheckpointPath(estimator.LatestCheckpoint()));
}

// Evaluates the newest checkpoint as the final one, unless that was done, and exports.
TrainAndEvaluateResults EvaluateLast(const Estimator& estimator, CheckpointEvaluation& evaluation) {
  const std::string latest = estimator.LatestCheckpoint();
  if (latest == evaluation.last()) {
    evaluation.Finish();
  } else {
    evaluation.Evaluate(latest, /*is_final=*/true);
  }
  return evaluation.results();
}

}  // namespace

int64_t StartStepOfWorker(int index) { return static_cast<int64_t>(8000.0 * std::log(index + 1.0)); }

Experiment::Experiment(ExperimentOptions options)
    : options_(CheckedExperimentOptions(std::move(options))), evaluated_(WithExperimentMetrics(options_)) {}

bool Experiment::Wait(double secs, const char* what) const {
  if (!(secs > 0)) return true;
  LogInfo("Waiting ", secs, " secs before starting ", what, ".");
  const absl::Duration time = absl::Seconds(secs);
  return options_.wait ? options_.wait(time) : WaitUntilStopped().For(time);
}

void Experiment::RefuseCluster(const char* schedule) const {
  if (!task().distributed() && !task().is_evaluator()) return;
  throw Error(WrongConfigurationError(absl::StrCat("schedule ", schedule, " is for a process alone, but this is ",
                                                   task().task().ToString(),
                                                   " of a cluster; accepted there: train_and_evaluate")));
}

void Experiment::SayResuming() const {
  if (!task().is_chief()) return;
  const std::string checkpoint = options_.estimator->LatestCheckpoint();
  if (!checkpoint.empty()) LogInfo("resuming from ", checkpoint);
}

EvalSpec Experiment::EvalSpecOf(const InputFn& input_fn, const std::string& name) const {
  return {.input_fn = input_fn,
          .steps = options_.eval_steps,
          .name = name,
          .hooks = options_.eval_hooks,
          .exporters = {},
          .start_delay_secs = options_.eval_delay_secs,
          .throttle_secs = options_.continuous_eval_throttle_secs};
}

void Experiment::Train(std::optional<double> delay_secs) {
  const TaskConfig& self = task();
  if (self.is_ps() || self.is_evaluator())
    throw Error(WrongConfigurationError(
        absl::StrCat("schedule train: ", self.task().ToString(),
                     " doesn't train; accepted there: ", self.is_ps() ? "run_std_server" : "continuous_eval")));
  std::vector<std::shared_ptr<SessionHook>> hooks = options_.train_monitors;
  double delay = delay_secs.value_or(0);
  if (!delay_secs && !self.is_chief()) {
    const int index = self.task().index;
    if (options_.delay_workers_by_global_step) {
      hooks.push_back(GlobalStepWaiter(StartStepOfWorker(index)));
    } else {
      delay = std::min(kLongestWorkerDelay, index * options_.worker_delay_secs);
    }
  }
  if (!Wait(delay, "training")) return;
  SayResuming();
  TrainToItsEnd(
      *options_.estimator, options_.train_input_fn,
      {.hooks = std::move(hooks), .max_steps = options_.train_steps, .saving_listeners = options_.saving_listeners});
}

TrainAndEvaluateResults Experiment::Evaluate(std::optional<double> delay_secs, const std::string& name) {
  if (!Wait(delay_secs.value_or(options_.eval_delay_secs), "eval")) return {};
  const EvalSpec spec = EvalSpecOf(options_.eval_input_fn, name.empty() ? "one_pass" : name);
  return {.eval = evaluated_->Evaluate(spec.input_fn, {.steps = spec.steps, .hooks = spec.hooks, .name = spec.name}),
          .exports = {}};
}

TrainAndEvaluateResults Experiment::EvaluateAsTheyCome(const EvalSpec& spec, std::optional<double> delay_secs,
                                                       std::optional<double> throttle_delay_secs, bool only_once) {
  const EvaluatorOptions options = {
      .start_delay = absl::Seconds(delay_secs.value_or(options_.eval_delay_secs)),
      .throttle = absl::Seconds(throttle_delay_secs.value_or(options_.continuous_eval_throttle_secs)),
      .max_steps = options_.train_steps,
      .patience = absl::Seconds(options_.continuous_eval_patience_secs),
      .same_again = !only_once,
      .wait = options_.wait,
      .clock = options_.clock,
      .go_on = options_.continuous_eval_predicate_fn};
  return EvaluateContinuously(*evaluated_, spec, options);
}

TrainAndEvaluateResults Experiment::ContinuousEval(std::optional<double> delay_secs,
                                                   std::optional<double> throttle_delay_secs,
                                                   bool evaluate_checkpoint_only_once) {
  EvalSpec spec = EvalSpecOf(options_.eval_input_fn, "continuous");
  spec.exporters = options_.export_strategies;
  return EvaluateAsTheyCome(spec, delay_secs, throttle_delay_secs, evaluate_checkpoint_only_once);
}

TrainAndEvaluateResults Experiment::ContinuousEvalOnTrainData(std::optional<double> delay_secs,
                                                              std::optional<double> throttle_delay_secs) {
  return EvaluateAsTheyCome(EvalSpecOf(options_.train_input_fn, "continuous_on_train_data"), delay_secs,
                            throttle_delay_secs, /*only_once=*/true);
}

TrainAndEvaluateResults Experiment::TrainAndEvaluate() {
  if (task().is_evaluator()) return ContinuousEval();
  if (task().is_chief()) return TrainThenEvaluate(options_.min_eval_frequency.value_or(1));
  if (task().is_ps()) {
    RunStdServer();
  } else {
    Train();
  }
  return {};
}

TrainAndEvaluateResults Experiment::LocalRun() {
  RefuseCluster("local_run");
  return TrainThenEvaluate(/*min_eval_frequency=*/0);
}

std::shared_ptr<CheckpointSaverListener> Experiment::EvaluateOnTheWay(CheckpointEvaluation& evaluation,
                                                                      int64_t every) const {
  return std::make_shared<ExperimentListener>(every, [this, &evaluation] {
    const std::string latest = options_.estimator->LatestCheckpoint();
    const bool reached = options_.train_steps && StepOfCheckpointPath(latest) >= *options_.train_steps;
    // If exports are made only at the end, this one isn't final to them yet.
    evaluation.Evaluate(latest, /*is_final=*/reached && options_.checkpoint_and_export);
  });
}

TrainAndEvaluateResults Experiment::TrainThenEvaluate(int64_t min_eval_frequency) {
  EvalSpec spec = EvalSpecOf(options_.eval_input_fn, /*name=*/"");
  if (options_.checkpoint_and_export) spec.exporters = options_.export_strategies;
  CheckpointEvaluation evaluation(*evaluated_, spec);
  std::vector<std::shared_ptr<CheckpointSaverListener>> listeners = options_.saving_listeners;
  if (min_eval_frequency > 0) listeners.push_back(EvaluateOnTheWay(evaluation, min_eval_frequency));
  SayResuming();
  const bool trained = TrainUnlessSignalled([&] {
    TrainToItsEnd(*options_.estimator, options_.train_input_fn,
                  {.hooks = options_.train_monitors, .max_steps = options_.train_steps, .saving_listeners = listeners});
  });
  if (!trained) return evaluation.results();
  spec.exporters = options_.export_strategies;
  return EvaluateLast(*options_.estimator, evaluation);
}

TrainAndEvaluateResults Experiment::ContinuousTrainAndEval() {
  RefuseCluster("continuous_train_and_eval");
  const std::optional<int64_t>& end = options_.train_steps;
  const int64_t of_an_iteration = options_.train_steps_per_iteration.value_or(
      end ? std::max<int64_t>(1, *end / kIterationsOfATraining) : kStepsOfAnIteration);
  EvalSpec spec = EvalSpecOf(options_.eval_input_fn, "one_pass");
  spec.exporters = options_.export_strategies;
  CheckpointEvaluation evaluation(*evaluated_, spec);
  SayResuming();
  for (int64_t step = StepOfLatestCheckpoint(*options_.estimator);;) {
    const int64_t until = end ? std::min(*end, step + of_an_iteration) : step + of_an_iteration;
    LogInfo("Training model for ", std::max<int64_t>(0, until - step), " steps");
    const bool trained = TrainUnlessSignalled([&] {
      options_.estimator->Train(
          options_.train_input_fn,
          {.hooks = options_.train_monitors, .max_steps = until, .saving_listeners = options_.saving_listeners});
    });
    if (!trained) return evaluation.results();
    const int64_t reached = StepOfLatestCheckpoint(*options_.estimator);
    // Training stopped before `until`: the input has ended, or a hook has stopped it.
    if (reached < until || (end && reached >= *end)) break;
    evaluation.Evaluate(options_.estimator->LatestCheckpoint(), /*is_final=*/false);
    const auto& go_on = options_.continuous_eval_predicate_fn;
    if (go_on && !go_on(evaluation.results().eval)) break;
    step = reached;
  }
  return EvaluateLast(*options_.estimator, evaluation);
}

void Experiment::RunStdServer() {
  if (!task().is_ps())
    throw Error(WrongConfigurationError(
        absl::StrCat("schedule run_std_server: ", task().task().ToString(), " isn't a ps, and only those serve")));
  muster::TrainAndEvaluate(*options_.estimator,
                           {.input_fn = options_.train_input_fn, .max_steps = options_.train_steps},
                           EvalSpecOf(options_.eval_input_fn, /*name=*/""));
}

TrainAndEvaluateResults Experiment::Test() {
  RefuseCluster("test");
  EvalSpec spec = EvalSpecOf(options_.eval_input_fn, "one_pass");
  spec.steps = 1;
  spec.exporters = options_.export_strategies;
  SayResuming();
  options_.estimator->Train(options_.train_input_fn, {.hooks = options_.train_monitors, .steps = 1});
  CheckpointEvaluation evaluation(*evaluated_, spec);
  return EvaluateLast(*options_.estimator, evaluation);
}

}  // namespace muster
