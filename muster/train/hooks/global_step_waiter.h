// Lets a worker begin later than others: its first step waits until the global step has reached a given value
// (TensorFlow's GlobalStepWaiterHook). Asynchronous training is more stable when workers join one after the other.
#pragma once

#include <cstdint>
#include <memory>

#include "muster/train/hook_api/session_hook.h"

namespace muster {

// Asks the ps twice a second, and waits in the session's event loop. Logs that it waits, and again whenever more than
// 1000 steps have been made or 30 seconds have passed. Doesn't wait if `wait_until_step` is 0 or less. If training ends
// meanwhile, or a stop is requested, the session ends without that step. Don't use it with a gate that counts on this
// worker (synchronous training with all of them): nobody would make those steps.
std::shared_ptr<SessionHook> GlobalStepWaiter(int64_t wait_until_step);

}  // namespace muster
