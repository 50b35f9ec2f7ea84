// The loop of a task that evaluates checkpoints as they come: the evaluator of a cluster, Experiment's continuous_eval.
// It sees nothing of the cluster but model_dir, and knows from there when it is done (training_end.h). Time and waiting
// are given to it, so that tests need neither. docs/train_and_evaluate.md. Used by one thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/estimator/distributed/train_and_evaluate.h"
#include "muster/estimator/estimator.h"

namespace muster {

struct EvaluatorOptions {
  // Before the first evaluation, and from one's start to the next's. The last one waits for neither.
  absl::Duration start_delay;
  absl::Duration throttle;
  std::optional<int64_t> max_steps;  // ends when a checkpoint of at least this step was evaluated
  // How long there may be no new checkpoint; then DeadlineExceeded (exit code 138). Said in the log after 10 seconds
  // without any, and from then on every 10 minutes.
  absl::Duration patience = absl::Hours(24);
  absl::Duration poll = absl::Seconds(1);  // how often it is looked for one
  // A training that had ended before the loop began, below max_steps, may be about to be gone on with by a chief that
  // is being started: so long it is waited for.
  absl::Duration resume_grace = absl::Seconds(30);
  bool same_again = false;  // evaluates the newest after each throttle, though it was evaluated before
  // Waits so long; false: a stop was asked for, and the loop ends. Empty: by itself, until Ctrl-C or SIGTERM.
  std::function<bool(absl::Duration)> wait;
  const Clock* clock = nullptr;  // null: the real one
  // After each evaluation; false ends the loop (continuous_eval_predicate_fn).
  std::function<bool(const EvalResults&)> go_on;
};

// The results of the last evaluation. A checkpoint is evaluated once; of several new ones the newest. Ends when the
// last checkpoint of the training is evaluated: one of max_steps, or the one that training_ended.json names, of a
// training with the same max_steps (any, if it is unset here). Throws Error: what Evaluate and the exporters throw;
// DeadlineExceeded, no new checkpoint; FailedPrecondition, training has ended without one. A checkpoint that was
// deleted before it could be read, as newer ones had come, is no error.
TrainAndEvaluateResults EvaluateContinuously(Estimator& estimator, const EvalSpec& spec,
                                             const EvaluatorOptions& options);

}  // namespace muster
