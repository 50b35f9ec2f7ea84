// A session's calls of its hooks: in their order, to the first that fails; a std::exception that one throws becomes a
// Status, so that none passes through a session that is in the middle of something. What is no std::exception is no
// error but the end of the thread (a cancellation, the death of a simulated process), and passes. Used by the training
// thread.
#pragma once

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "muster/train/hook/session_hook.h"

namespace muster {

// `method`: how people know it ("BeforeRun").
[[nodiscard]] absl::Status CallHook(const char* method, SessionHook& hook,
                                    absl::FunctionRef<absl::Status(SessionHook&)> call);
[[nodiscard]] absl::Status CallHooks(const char* method, const std::vector<std::shared_ptr<SessionHook>>& hooks,
                                     absl::FunctionRef<absl::Status(SessionHook&)> call);

}  // namespace muster
