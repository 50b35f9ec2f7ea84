// Ends the training of the whole cluster before its last step (tf.estimator.experimental: stop_if_no_decrease_hook and
// its kin, early_stopping.py). The chief decides, from the values of its own runs: the loss, or a scalar that the
// program adds (Session::AddScalar), such as the accuracy of an evaluation every so many steps. Its session stops, and
// when it ends so does training on the ps, so that the workers' next step is their last; without ps the others end with
// it anyway. On a worker these hooks do nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "muster/train/hook/session_hook.h"

namespace muster {

// How often it is asked whether to stop; one of them. Neither: every 60 seconds.
struct StopCheck {
  std::optional<int64_t> run_every_steps;
  std::optional<absl::Duration> run_every;
};

// Stops as soon as a question is answered with true. It gets the values of the run that has just ended.
std::shared_ptr<SessionHook> StopIf(std::function<bool(const RunValues&)> should_stop, const StopCheck& check = {});

// Stops once the metric's best value is so many global steps old. Every run that has the metric counts, whenever the
// questions are asked; a value that is NaN is never the best.
struct NoImprovementOptions {
  std::string metric = "loss";                // as in LoggingTensor
  int64_t max_steps_without_improvement = 0;  // > 0
  int64_t min_steps = 0;                      // values of earlier global steps don't count
  StopCheck check;
};
std::shared_ptr<SessionHook> StopIfNoDecrease(const NoImprovementOptions& options);
std::shared_ptr<SessionHook> StopIfNoIncrease(const NoImprovementOptions& options);

// Stops once the metric has been above, or below, the threshold.
struct ThresholdOptions {
  std::string metric = "loss";
  double threshold = 0;
  int64_t min_steps = 0;
  StopCheck check;
};
std::shared_ptr<SessionHook> StopIfHigher(const ThresholdOptions& options);
std::shared_ptr<SessionHook> StopIfLower(const ThresholdOptions& options);

}  // namespace muster
