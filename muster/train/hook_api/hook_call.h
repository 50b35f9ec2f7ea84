// Calls a session's hooks in their order, up to the first that fails. A std::exception of a hook becomes a Status, so
// that it can't pass through a session in the middle of its work. Anything else that is thrown isn't an error but the
// end of the thread (a cancellation, the death of a simulated process), and passes. Used by the training thread.
#pragma once

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "muster/train/hook_api/session_hook.h"

namespace muster {

// `method` is the name that users know it by ("BeforeRun").
[[nodiscard]] absl::Status CallHook(const char* method, SessionHook& hook,
                                    absl::FunctionRef<absl::Status(SessionHook&)> call);
[[nodiscard]] absl::Status CallHooks(const char* method, const std::vector<std::shared_ptr<SessionHook>>& hooks,
                                     absl::FunctionRef<absl::Status(SessionHook&)> call);

}  // namespace muster
