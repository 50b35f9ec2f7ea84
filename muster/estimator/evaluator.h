// The loop of a task that evaluates checkpoints as they come: the evaluator of a cluster, Experiment's continuous_eval.
// Time and waiting are given to it, so that tests need neither. Used by one thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/estimator/estimator.h"
#include "muster/estimator/train_and_evaluate.h"

namespace muster {

struct EvaluatorOptions {
  absl::Duration start_delay;
  absl::Duration throttle;
  std::optional<int64_t> max_steps;  // ends when a checkpoint of at least this step was evaluated
  // How long there may be no new checkpoint; then DeadlineExceeded (exit code 138). Said in the log every 10 minutes.
  absl::Duration patience = absl::Hours(24);
  absl::Duration poll = absl::Seconds(1);  // how often it is looked for one
  // Waits so long; false: a stop was asked for (Ctrl-C), and the loop ends. Of tests: advances a simulated clock.
  std::function<bool(absl::Duration)> wait;
  const Clock* clock = nullptr;  // null: the real one
  // After each evaluation; false ends the loop (continuous_eval_predicate_fn).
  std::function<bool(const EvalResults&)> go_on;
};

// The results of the last evaluation. A checkpoint is evaluated once; of several new ones the newest. An evaluator that
// finds training ended (the ps and workers can't be asked: by the final checkpoint of max_steps alone) ends.
TrainAndEvaluateResults EvaluateContinuously(Estimator& estimator, const EvalSpec& spec,
                                             const EvaluatorOptions& options);

}  // namespace muster
