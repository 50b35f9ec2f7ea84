// Lets a worker begin later than others: its first step waits until the global step is so far (TensorFlow's
// GlobalStepWaiterHook). Asynchronous training is stabler when workers join one after the other.
#pragma once

#include <cstdint>
#include <memory>

#include "muster/train/hook/session_hook.h"

namespace muster {

// Asks the ps twice a second, and waits in the session's event loop; says so, and again whenever more than 1000 steps
// have been made or 30 seconds have passed. 0 or less: doesn't wait. Where training ends meanwhile, or a stop is asked
// for, the session ends without that step. Not with a gate that counts on this worker (synchronous training with all of
// them): nobody would make those steps.
std::shared_ptr<SessionHook> GlobalStepWaiter(int64_t wait_until_step);

}  // namespace muster
