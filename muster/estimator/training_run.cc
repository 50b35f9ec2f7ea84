#include "muster/estimator/training_run.h"

#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/torch_bridge/facade/algorithms.h"
#include "muster/train/hooks/hooks.h"

namespace muster {
namespace {

using HookList = std::vector<std::shared_ptr<SessionHook>>;

// Tells the input that a step is over. Comes before the checkpoint saver, which is the last of the chief's own hooks.
class ReportInputHook final : public SessionHook {
 public:
  // `drawn`: the batch of the current step. Both outlive the session.
  ReportInputHook(InputReader& input, std::optional<Minibatch>& drawn) : input_(input), drawn_(drawn) {}
  // Also called after a recovery, in which the worker has joined again: its units of shared work now belong to others.
  absl::Status AfterCreateSession(const SessionContext&) override {
    if (input_.shares()) drawn_.reset();
    return absl::OkStatus();
  }
  absl::Status AfterRun(RunContext&, const RunValues&) override {
    input_.StepOver();
    return absl::OkStatus();
  }

 private:
  InputReader& input_;
  std::optional<Minibatch>& drawn_;
};

// Fails on infinite losses, which NanTensor lets pass.
class InfiniteLossHook final : public SessionHook {
 public:
  absl::Status AfterRun(RunContext&, const RunValues& values) override {
    if (!std::isinf(values.loss)) return absl::OkStatus();
    LogError("Model diverged with loss = ", values.loss, ".");
    return absl::InternalError(absl::StrCat("The loss is ", values.loss, " at step ", values.global_step,
                                            ": a smaller learning rate, clipping, or another scale of the features "
                                            "may keep the model from diverging"));
  }
};

std::shared_ptr<SessionHook> TrainingSaver(const TrainingRun& run) {
  const RunConfig& config = run.config;
  CheckpointSaverOptions saver{.listeners = run.options.saving_listeners};
  const double secs = config.save_checkpoints_secs.value_or(kSaveCheckpointsSecs);
  if (config.save_checkpoints_steps.value_or(0) > 0) {
    saver.save_steps = config.save_checkpoints_steps;
  } else {
    // Checkpoints at the beginning and at the end are saved all the same.
    const bool never = config.save_checkpoints_steps.has_value() || secs == 0;
    saver.save_interval = never ? absl::InfiniteDuration() : absl::Seconds(secs);
  }
  LogInfo("Create CheckpointSaverHook.");
  return CheckpointSaver(saver);
}

void AppendHooks(const HookList& more, HookList& hooks) { hooks.insert(hooks.end(), more.begin(), more.end()); }

// The hooks in TensorFlow's order (estimator.py, _train_with_estimator_spec).
HookList TrainingHooks(const TrainingRun& run) {
  const TrainOptions& options = run.options;
  const bool knows_end = options.steps || options.max_steps;
  HookList hooks = options.hooks;
  if (knows_end) hooks.push_back(StopAtStep({.num_steps = options.steps, .last_step = options.max_steps}));
  hooks.push_back(NanTensor());
  hooks.push_back(std::make_shared<InfiniteLossHook>());
  if (run.config.log_step_count_steps > 0)
    hooks.push_back(LoggingTensor({.tensors = {"loss", "step"}, .every_n_iter = run.config.log_step_count_steps}));
  AppendHooks(run.spec.training_hooks, hooks);
  if (knows_end && StandardError().is_terminal)
    hooks.push_back(ProgressBar({.last_step = options.max_steps, .num_steps = options.steps}));
  return hooks;
}

// The model function's own scaffold, extended by what this training needs.
std::shared_ptr<Scaffold> TrainingScaffold(const TrainingRun& run, TensorSource& source) {
  const std::shared_ptr<Scaffold> scaffold = run.spec.scaffold ? run.spec.scaffold : std::make_shared<Scaffold>();
  const absl::Status changed = scaffold->Change([&](ScaffoldOptions& options) {
    if (run.warm_start)
      options.init_fn = [&source, settings = *run.warm_start, own = options.init_fn] {
        RETURN_IF_ERROR(WarmStart(source, settings));
        return own ? own() : absl::OkStatus();
      };
    options.local_init = [own = options.local_init] {
      LogInfo("Running local_init_op.");
      if (own) RETURN_IF_ERROR(own());
      LogInfo("Done running local_init_op.");
      return absl::OkStatus();
    };
    if (options.saver) options.saver->saveables.push_back(run.input.Position());
  });
  if (!changed.ok())
    throw Error(WrongConfigurationError(absl::StrCat("the model function returned a Scaffold that was used before (",
                                                     changed.message(), "): it must make a new one in each call")));
  return scaffold;
}

SessionOptions TrainingSessionOptions(const TrainingRun& run, TensorSource& source) {
  const RunConfig& config = run.config;
  SessionOptions options{.checkpoint_dir = config.model_dir,
                         .scaffold = TrainingScaffold(run, source),
                         // The saver is among chief_only_hooks, where it has its listeners.
                         .save_checkpoint_secs = 0,
                         .save_summaries_steps = config.save_summary_steps,
                         .config = config.session_config,
                         .log_step_count_steps = config.log_step_count_steps,
                         .max_wait_secs = config.session_creation_timeout_secs};
  if (!options.scaffold->options().saver) {
    options.keep_checkpoint_max = config.keep_checkpoint_max;
    options.keep_checkpoint_every_n_hours = config.keep_checkpoint_every_n_hours;
    options.saveables = {run.input.Position()};
  }
  return options;
}

}  // namespace

void RunTraining(const TrainingRun& run) {
  Replica replica(run.server, run.spec.module);
  Trainer trainer = MakeTrainer(replica, run.config.algorithm, run.spec.optimizer);
  run.spec.module->train();
  SessionOptions options = TrainingSessionOptions(run, replica.source());
  HookList hooks = TrainingHooks(run);
  std::optional<Minibatch> minibatch;
  const auto report = std::make_shared<ReportInputHook>(run.input, minibatch);
  if (run.config.task->is_chief()) {
    options.chief_only_hooks = {report, TrainingSaver(run)};
    AppendHooks(run.spec.training_chief_hooks, options.chief_only_hooks);
  } else {
    hooks.insert(hooks.begin(), report);
  }

  MonitoredTrainingSession session(run.server, std::move(options), std::move(hooks));
  bool any_step = false;
  while (!session.ShouldStop()) {
    // Drawn once, however often a recovery repeats the step, unless the recovery has lost the batch.
    minibatch.reset();
    session.Run(trainer, [&]() -> torch::Tensor {
      if (!minibatch) {
        Minibatch drawn;
        if (!run.input.Next(drawn)) throw Error(absl::OutOfRangeError("the training input function has ended"));
        minibatch = drawn.To(replica.device());
      }
      any_step = true;
      const ModelOutputs outputs = run.spec.forward(*minibatch);
      return LossOf(outputs, Mode::kTrain);
    });
  }
  session.Close();
  const bool was_done = run.options.max_steps && session.global_step() >= *run.options.max_steps;
  if (!any_step && !was_done)
    LogWarning("Training with estimator made no steps. Perhaps input is empty or misspecified.");
}

}  // namespace muster
