// The hooks that every TensorFlow user knows, with the same defaults, trigger rules and log lines
// (python/training/basic_session_run_hooks.py), and those of hooks/. Each is used by one session's training thread.
// docs/hooks.md has all of them in one table.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/train/hook/session_hook.h"
#include "muster/train/hooks/checkpoint_saver_listener.h"
#include "muster/train/hooks/early_stopping.h"
#include "muster/train/hooks/feed_fn.h"
#include "muster/train/hooks/final_ops.h"
#include "muster/train/hooks/global_step_waiter.h"
#include "muster/train/hooks/gradients.h"
#include "muster/train/hooks/learning_rate_logger.h"
#include "muster/train/hooks/profiler.h"
#include "muster/train/hooks/progress_bar.h"

namespace muster {

// Fires every so many steps or so much time: at its first question, then at step ≥ last + steps or time ≥ last +
// interval; never twice for one step. At an earlier step than the last one an older checkpoint was loaded: that is a
// first question again, for the step may be far from where it was.
class SecondOrStepTimer {
 public:
  static SecondOrStepTimer EverySteps(int64_t steps) { return SecondOrStepTimer(steps, std::nullopt); }
  static SecondOrStepTimer Every(absl::Duration interval) { return SecondOrStepTimer(std::nullopt, interval); }

  bool ShouldTriggerForStep(int64_t step, absl::Time now) const;
  struct Elapsed {
    absl::Duration time;
    int64_t steps = 0;
  };
  // Notes that it fired; what has passed since it fired before, nothing the first time and at an earlier step.
  std::optional<Elapsed> UpdateLastTriggered(int64_t step, absl::Time now);
  std::optional<int64_t> last_triggered_step() const { return last_step_; }

 private:
  SecondOrStepTimer(std::optional<int64_t> steps, std::optional<absl::Duration> interval)
      : every_steps_(steps), every_(interval) {}

  std::optional<int64_t> every_steps_;
  std::optional<absl::Duration> every_;
  std::optional<int64_t> last_step_;
  absl::Time last_time_;
};

// Stops at global step `last_step`, or `num_steps` after the step at which the session was first created (not counted
// again at a recovery). Exactly one of them.
struct StopAtStepOptions {
  std::optional<int64_t> num_steps;
  std::optional<int64_t> last_step;
};
std::shared_ptr<SessionHook> StopAtStep(const StopAtStepOptions& options);

// The chief: saves when the session was created, then every `save_steps` or `save_interval` (exactly one), and at the
// end if the last step isn't saved yet.
struct CheckpointSaverOptions {
  std::optional<int64_t> save_steps;
  std::optional<absl::Duration> save_interval;
  std::vector<std::shared_ptr<CheckpointSaverListener>> listeners = {};
};
std::shared_ptr<SessionHook> CheckpointSaver(const CheckpointSaverOptions& options);

// Logs `global_step/sec: 12.34` and writes it as a summary, every so many steps or so much time, not both; neither:
// every 100 steps.
struct StepCounterOptions {
  std::optional<int64_t> every_n_steps;
  std::optional<absl::Duration> every;
};
std::shared_ptr<SessionHook> StepCounter(const StepCounterOptions& options = {});

// Writes the loss and all that the program registered in the step (docs/summaries.md): of the first run, then every
// `save_steps` or `save_interval` (exactly one). Tells TensorBoard from which step on older summaries are out of date,
// and flushes at the end.
struct SummarySaverOptions {
  std::optional<int64_t> save_steps;
  std::optional<absl::Duration> save_interval;
  // What is written instead, as an encoded `Summary`; called after a run whose summaries are due, when
  // StepSummaries::Current still knows that step. At most one: the scaffold's, or one for this hook.
  SummaryOp scaffold_summary;
  SummaryOp summary_op;
};
std::shared_ptr<SessionHook> SummarySaver(const SummarySaverOptions& options);

// Logs `loss = 0.5, step = 101 (33.300 sec)` every so many runs of this process or so much time, not both; neither:
// every 100 runs, or with at_end at the end alone.
struct LoggingTensorOptions {
  std::vector<std::string> tensors = {"loss", "step"};  // in this order
  // Instead, with tags of their own, {tag, tensor}: sorted by tag, as TensorFlow does with a dict.
  std::map<std::string, std::string> tagged_tensors = {};
  // Makes the line, instead of all that.
  std::function<std::string(const RunValues&)> formatter = {};
  std::optional<int64_t> every_n_iter;
  std::optional<absl::Duration> every;
  bool at_end = false;  // log the last values when the session ends
};
std::shared_ptr<SessionHook> LoggingTensor(const LoggingTensorOptions& options = {});

// A loss that isn't a number: an error (OutOfRange would be a clean end, so Internal: "NaN loss during training."), or
// a stop without one.
struct NanTensorOptions {
  std::string tensor = "loss";  // as in LoggingTensor; a run without it is InvalidArgument
  bool fail_on_nan_loss = true;
};
std::shared_ptr<SessionHook> NanTensor(const NanTensorOptions& options = {});

}  // namespace muster
