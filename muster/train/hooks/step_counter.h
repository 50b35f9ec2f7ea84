// Measures how fast the cluster trains, with the semantics of TensorFlow's StepCounterHook. Used by one session's
// training thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/time/time.h"
#include "muster/train/hook_api/session_hook.h"

namespace muster {

// Logs `global_step/sec: 12.34` and writes it as a summary, every so many steps or so much time, not both; neither:
// every 100 steps.
struct StepCounterOptions {
  std::optional<int64_t> every_n_steps;
  std::optional<absl::Duration> every;
};
std::shared_ptr<SessionHook> StepCounter(const StepCounterOptions& options = {});

}  // namespace muster
