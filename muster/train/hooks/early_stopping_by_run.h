// Ends the training of the whole cluster before its last step (tf.estimator.experimental: stop_if_no_decrease_hook and
// its relatives, early_stopping.py). The chief decides, from the values of its own runs: the loss, or a scalar that the
// program adds (Session::AddScalar), such as the accuracy of an evaluation every so many steps. Its session stops, and
// the end of that session ends training on the ps, so that the workers' next step is their last. Without ps the other
// workers end together with the chief anyway. On a worker these hooks do nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "muster/train/hook_api/session_hook.h"

namespace muster {

// How often to decide whether to stop: one of the two. Default: every 60 seconds.
struct StopCheck {
  std::optional<int64_t> run_every_steps;
  std::optional<absl::Duration> run_every;
};

// Stops as soon as `should_stop` returns true. It is given the values of the run that has just ended.
std::shared_ptr<SessionHook> StopIf(std::function<bool(const RunValues&)> should_stop, const StopCheck& check = {});

// Stops once the metric's best value is so many global steps old. Every run that has the metric counts, whenever the
// check takes place. A NaN is never the best value.
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
