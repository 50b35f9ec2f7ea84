// Shows the rule's current learning rate: as `learning_rate = 0.05, step = 101` in the log and, if there are summaries,
// as the scalar "learning_rate".
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/time/time.h"
#include "muster/train/hook_api/session_hook.h"

namespace muster {

// Logs after the first run, then every so many global steps or so much time, not both; default: every 100 steps. The
// schedule is evaluated at the global step that the run has reached, which is the rate of the next update. Groups of
// variables with rules of their own are "learning_rate/NAME", by the first name (or pattern) of the group; rules
// without a rate (add) are left out.
struct LearningRateLoggerOptions {
  std::optional<int64_t> every_n_steps;
  std::optional<absl::Duration> every;
};
std::shared_ptr<SessionHook> LearningRateLogger(const LearningRateLoggerOptions& options = {});

}  // namespace muster
