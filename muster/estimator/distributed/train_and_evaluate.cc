#include "muster/estimator/distributed/train_and_evaluate.h"

#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/cluster/quoted.h"
#include "muster/estimator/distributed/checkpoint_evaluation.h"
#include "muster/estimator/distributed/early_stopping_by_evaluation.h"
#include "muster/estimator/distributed/evaluator.h"
#include "muster/estimator/training_end.h"
#include "muster/store/client/store_client.h"
#include "muster/torch_bridge/facade/training.h"
#include "muster/train/hooks/hooks.h"

namespace muster {
namespace {

absl::Status CheckSpecCount(const char* field, const std::optional<int64_t>& value) {
  if (!value || *value > 0) return absl::OkStatus();
  return WrongOptionError(absl::StrCat(field, ": ", *value, "; accepted is a whole number from 1, or nothing"));
}

absl::Status CheckSpecSeconds(const char* field, double value) {
  if (std::isfinite(value) && value >= 0) return absl::OkStatus();
  return WrongOptionError(absl::StrCat(field, ": ", value, "; accepted is a number of seconds from 0"));
}

template <typename T>
absl::Status CheckSpecPointers(const char* field, const std::vector<std::shared_ptr<T>>& all) {
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i] == nullptr) return WrongOptionError(absl::StrCat(field, "[", i, "] is null"));
  return absl::OkStatus();
}

// Evaluates checkpoints as they are saved, in the thread that trains.
class EvaluationListener final : public CheckpointSaverListener {
 public:
  EvaluationListener(Estimator& estimator, const EvalSpec& spec, std::optional<int64_t> max_steps)
      : estimator_(estimator),
        throttle_secs_(spec.throttle_secs),
        max_steps_(max_steps),
        timer_(SecondOrStepTimer::Every(absl::Seconds(spec.throttle_secs))),
        evaluation_(estimator, spec) {}

  absl::StatusOr<AfterSaving> AfterSave(const SessionContext& session, int64_t global_step) override {
    if (!begin_) {  // the checkpoint that training begins with
      begin_ = global_step;
      return AfterSaving::kContinue;
    }
    if (session.stop_requested()) return AfterSaving::kContinue;  // End logs it
    if (!timer_.ShouldTriggerForStep(global_step, session.now)) {
      LogInfo("Skip the current checkpoint eval due to throttle secs (", throttle_secs_, " secs).");
      return AfterSaving::kContinue;
    }
    timer_.UpdateLastTriggered(global_step, session.now);
    const WorkerProgress::Busy busy(session.client->progress(), "evaluating");
    const std::string checkpoint = estimator_.LatestCheckpoint();
    evaluation_.Evaluate(checkpoint, max_steps_ && StepOfCheckpointPath(checkpoint) >= *max_steps_);
    return AfterSaving::kContinue;
  }
  absl::Status End(const SessionContext& session, int64_t global_step) override {
    if (session.stop_requested()) {
      interrupted_ = true;
      LogInfo("Interrupted at step ", global_step, ": its checkpoint is not evaluated.");
      return absl::OkStatus();
    }
    if (global_step == begin_) return absl::OkStatus();  // there was nothing to train
    const WorkerProgress::Busy busy(session.client->progress(), "evaluating");
    const std::string checkpoint = estimator_.LatestCheckpoint();
    if (checkpoint == evaluation_.last()) {
      evaluation_.Finish();
    } else {
      evaluation_.Evaluate(checkpoint, /*is_final=*/true);
    }
    return absl::OkStatus();
  }

  CheckpointEvaluation& evaluation() { return evaluation_; }
  bool interrupted() const { return interrupted_; }

 private:
  Estimator& estimator_;
  const double throttle_secs_;
  const std::optional<int64_t> max_steps_;
  SecondOrStepTimer timer_;
  CheckpointEvaluation evaluation_;
  std::optional<int64_t> begin_;  // the step of the first checkpoint
  bool interrupted_ = false;
};

TrainOptions OptionsOfTrainSpec(const TrainSpec& spec) {
  return {.hooks = spec.hooks, .max_steps = spec.max_steps, .saving_listeners = spec.saving_listeners};
}

// For a training that had ended before this run: its known results, or a new evaluation.
TrainAndEvaluateResults ResultsOfEarlierTraining(Estimator& estimator, const EvalSpec& spec,
                                                 CheckpointEvaluation& evaluation) {
  const std::string checkpoint = estimator.LatestCheckpoint();
  const auto known = ValueOrThrow(ReadEvalMetrics(PosixFileSystem(), estimator.EvalDir(spec.name)));
  const auto found = known.find(StepOfCheckpointPath(checkpoint));
  if (found != known.end()) return {.eval = found->second, .exports = {}};
  evaluation.Evaluate(checkpoint, /*is_final=*/true);
  return evaluation.results();
}

TrainAndEvaluateResults TrainWithEvaluations(Estimator& estimator, const TrainSpec& train_spec,
                                             const EvalSpec& eval_spec) {
  const auto listener = std::make_shared<EvaluationListener>(estimator, eval_spec, train_spec.max_steps);
  TrainOptions options = OptionsOfTrainSpec(train_spec);
  options.saving_listeners.push_back(listener);
  TrainToItsEnd(estimator, train_spec.input_fn, options);
  CheckpointEvaluation& evaluation = listener->evaluation();
  if (!evaluation.last().empty() || listener->interrupted()) return evaluation.results();
  return ResultsOfEarlierTraining(estimator, eval_spec, evaluation);
}

TrainAndEvaluateResults RunLocally(Estimator& estimator, const TrainSpec& train_spec, const EvalSpec& eval_spec) {
  LogInfo("Running training and evaluation locally (non-distributed).");
  LogInfo(
      "Start train and evaluate loop. The evaluate will happen after every checkpoint. Checkpoint frequency is "
      "determined based on RunConfig arguments: ",
      CheckpointFrequencyText(estimator.config()), ".");
  return TrainWithEvaluations(estimator, train_spec, eval_spec);
}

}  // namespace

absl::Status CheckTrainSpec(const TrainSpec& spec) {
  if (!spec.input_fn) return WrongOptionError("TrainSpec.input_fn: there is none");
  RETURN_IF_ERROR(CheckSpecCount("TrainSpec.max_steps", spec.max_steps));
  RETURN_IF_ERROR(CheckSpecPointers("TrainSpec.hooks", spec.hooks));
  return CheckSpecPointers("TrainSpec.saving_listeners", spec.saving_listeners);
}

absl::Status CheckEvalSpec(const EvalSpec& spec) {
  if (!spec.input_fn) return WrongOptionError("EvalSpec.input_fn: there is none");
  RETURN_IF_ERROR(CheckSpecCount("EvalSpec.steps", spec.steps));
  RETURN_IF_ERROR(CheckSpecSeconds("EvalSpec.start_delay_secs", spec.start_delay_secs));
  RETURN_IF_ERROR(CheckSpecSeconds("EvalSpec.throttle_secs", spec.throttle_secs));
  RETURN_IF_ERROR(CheckSpecSeconds("EvalSpec.patience_secs", spec.patience_secs));
  RETURN_IF_ERROR(CheckSpecPointers("EvalSpec.hooks", spec.hooks));
  RETURN_IF_ERROR(CheckSpecPointers("EvalSpec.exporters", spec.exporters));
  std::set<std::string> names;
  for (const auto& exporter : spec.exporters) {
    if (names.insert(exporter->name()).second) continue;
    return WrongOptionError(absl::StrCat("EvalSpec.exporters: two are called ", Quoted(exporter->name()),
                                         "; accepted are different names, as each is a folder"));
  }
  return absl::OkStatus();
}

TrainAndEvaluateResults TrainAndEvaluate(Estimator& estimator, const TrainSpec& train_spec, const EvalSpec& eval_spec) {
  ThrowIfError(CheckTrainSpec(train_spec));
  ThrowIfError(CheckEvalSpec(eval_spec));
  const TaskConfig& task = *estimator.config().task;
  const std::string& job = task.task().job;
  if (task.is_ps()) {
    Server server(task, estimator.config().node);
    ThrowIfError(server.node().Join());
    return {};
  }
  if (task.is_evaluator()) {
    return EvaluateContinuously(estimator, eval_spec,
                                {.start_delay = absl::Seconds(eval_spec.start_delay_secs),
                                 .throttle = absl::Seconds(eval_spec.throttle_secs),
                                 .max_steps = train_spec.max_steps,
                                 .patience = absl::Seconds(eval_spec.patience_secs)});
  }
  if (job == kMasterJob) return TrainWithEvaluations(estimator, train_spec, eval_spec);
  // A chief that is its own cluster may have an evaluator, which is in no cluster.
  if (!task.distributed() && job != kChiefJob) return RunLocally(estimator, train_spec, eval_spec);
  if (job != kChiefJob && job != kWorkerJob)
    throw Error(WrongConfigurationError(absl::StrCat("TrainAndEvaluate: this process is ", task.task().ToString(),
                                                     "; accepted jobs are chief, master, worker, ps and evaluator")));
  TrainToItsEnd(estimator, train_spec.input_fn, OptionsOfTrainSpec(train_spec));
  return {};
}

}  // namespace muster
