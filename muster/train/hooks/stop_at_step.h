// Ends training after so many steps, with the semantics of TensorFlow's StopAtStepHook. Used by one session's training
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "muster/train/hook_api/session_hook.h"

namespace muster {

// Stops at global step `last_step`, or `num_steps` after the step at which the session was first created (not counted
// again at a recovery). Exactly one of them.
struct StopAtStepOptions {
  std::optional<int64_t> num_steps;
  std::optional<int64_t> last_step;
};
std::shared_ptr<SessionHook> StopAtStep(const StopAtStepOptions& options);

}  // namespace muster
