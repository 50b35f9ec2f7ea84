// The hooks that every TensorFlow user knows, with the same defaults, trigger rules and log lines
// (python/training/basic_session_run_hooks.py); hooks/ has further ones. Each is used by one session's training thread.
// docs/hooks.md lists all of them in one table.
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

// Fires every N steps or every interval: at the first question, then at step ≥ last + steps or time ≥ last + interval;
// never twice for one step. A step before the last one means that an older checkpoint was loaded. That counts as a
// first question again, because the step may be far from where it was.
class SecondOrStepTimer {
 public:
  static SecondOrStepTimer EverySteps(int64_t steps) { return SecondOrStepTimer(steps, std::nullopt); }
  static SecondOrStepTimer Every(absl::Duration interval) { return SecondOrStepTimer(std::nullopt, interval); }

  bool ShouldTriggerForStep(int64_t step, absl::Time now) const;
  struct Elapsed {
    absl::Duration time;
    int64_t steps = 0;
  };
  // Records that it fired. Returns what has passed since it fired before; nothing the first time and at an earlier
  // step.
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

// Stops at global step `last_step`, or `num_steps` after the step at which the session was first created (a recovery
// doesn't restart the count). Exactly one of them.
struct StopAtStepOptions {
  std::optional<int64_t> num_steps;
  std::optional<int64_t> last_step;
};
std::shared_ptr<SessionHook> StopAtStep(const StopAtStepOptions& options);

// The chief saves when the session is created, then every `save_steps` or `save_interval` (exactly one), and at the end
// if the last step isn't saved yet.
struct CheckpointSaverOptions {
  std::optional<int64_t> save_steps;
  std::optional<absl::Duration> save_interval;
  std::vector<std::shared_ptr<CheckpointSaverListener>> listeners = {};
};
std::shared_ptr<SessionHook> CheckpointSaver(const CheckpointSaverOptions& options);

// Logs `global_step/sec: 12.34` and writes it as a summary, every so many steps or so much time, not both. Default:
// every 100 steps.
struct StepCounterOptions {
  std::optional<int64_t> every_n_steps;
  std::optional<absl::Duration> every;
};
std::shared_ptr<SessionHook> StepCounter(const StepCounterOptions& options = {});

// Writes the loss and everything the program registered in the step (docs/summaries.md): in the first run, then every
// `save_steps` or `save_interval` (exactly one). Tells TensorBoard from which step on older summaries are out of date,
// and flushes at the end.
struct SummarySaverOptions {
  std::optional<int64_t> save_steps;
  std::optional<absl::Duration> save_interval;
  // Writes these encoded `Summary`s instead. Called after a run whose summaries are due, while StepSummaries::Current
  // still knows that step. Give at most one: the scaffold's, or one for this hook.
  SummaryOp scaffold_summary;
  SummaryOp summary_op;
};
std::shared_ptr<SessionHook> SummarySaver(const SummarySaverOptions& options);

// Logs `loss = 0.5, step = 101 (33.300 sec)` every so many runs of this process or so much time, not both. Default:
// every 100 runs, or only at the end if at_end is set.
struct LoggingTensorOptions {
  std::vector<std::string> tensors = {"loss", "step"};  // in this order
  // Instead of `tensors`: {tag, tensor} pairs, sorted by tag, as TensorFlow sorts a dict.
  std::map<std::string, std::string> tagged_tensors = {};
  // Makes the whole line, instead of both.
  std::function<std::string(const RunValues&)> formatter = {};
  std::optional<int64_t> every_n_iter;
  std::optional<absl::Duration> every;
  bool at_end = false;  // log the last values when the session ends
};
std::shared_ptr<SessionHook> LoggingTensor(const LoggingTensorOptions& options = {});

// Ends training when the loss isn't a number: with an error (Internal, "NaN loss during training."; OutOfRange would be
// a clean end), or with a stop without one.
struct NanTensorOptions {
  std::string tensor = "loss";  // as in LoggingTensor; a run without it is InvalidArgument
  bool fail_on_nan_loss = true;
};
std::shared_ptr<SessionHook> NanTensor(const NanTensorOptions& options = {});

}  // namespace muster
