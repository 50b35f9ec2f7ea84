// The loop of a task that evaluates checkpoints as they come: the evaluator of a cluster, Experiment's continuous_eval.
// It sees only model_dir, not the cluster, and finds there when it is done (training_end.h). Time and waiting are
// injected, so that tests need neither. docs/train_and_evaluate.md. Used by one thread.
#pragma once

#include <functional>
#include <optional>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/estimator/distributed/train_and_evaluate.h"
#include "muster/estimator/estimator.h"

namespace muster {

struct EvaluatorOptions {
  // Before the first evaluation, and from one evaluation's start to the next's. The last one waits for neither.
  absl::Duration start_delay;
  absl::Duration throttle;
  std::optional<int64_t> max_steps;  // ends once a checkpoint of at least this step is evaluated
  // How long there may be no new checkpoint; then DeadlineExceeded (exit code 138). Logged after 10 seconds without
  // any, and from then on every 10 minutes.
  absl::Duration patience = absl::Hours(24);
  absl::Duration poll = absl::Seconds(1);  // how often to look for one
  // If training had ended below max_steps before the loop began, a chief that is starting may be about to continue it:
  // how long to wait for that.
  absl::Duration resume_grace = absl::Seconds(30);
  bool same_again = false;  // evaluates the newest after each throttle, even if evaluated before
  // Waits for the duration; returns false if a stop was requested, and the loop ends. Empty: the loop's own wait, which
  // Ctrl-C or SIGTERM ends.
  std::function<bool(absl::Duration)> wait;
  const Clock* clock = nullptr;  // null: the real one
  // Called after each evaluation; false ends the loop (continuous_eval_predicate_fn).
  std::function<bool(const EvalResults&)> go_on;
};

// Returns the results of the last evaluation. A checkpoint is evaluated once; of several new ones the newest. Ends when
// the training's last checkpoint is evaluated: one of max_steps, or the one that training_ended.json names, for a
// training with the same max_steps (any, if it is unset here). Throws Error: those of Evaluate and the exporters;
// DeadlineExceeded, no new checkpoint; FailedPrecondition, training has ended without one. It is no error if a
// checkpoint was deleted before it could be read because newer ones were saved.
TrainAndEvaluateResults EvaluateContinuously(Estimator& estimator, const EvalSpec& spec,
                                             const EvaluatorOptions& options);

}  // namespace muster
