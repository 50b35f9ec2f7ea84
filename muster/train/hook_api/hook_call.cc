#include "muster/train/hook_api/hook_call.h"

#include <exception>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/train/threads/error.h"

namespace muster {

absl::Status CallHook(const char* method, SessionHook& hook, absl::FunctionRef<absl::Status(SessionHook&)> call) {
  try {
    return call(hook);
  } catch (const Error& error) {
    return error.status();
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("a hook's ", method, " threw: ", error.what()));
  }
}

absl::Status CallHooks(const char* method, const std::vector<std::shared_ptr<SessionHook>>& hooks,
                       absl::FunctionRef<absl::Status(SessionHook&)> call) {
  for (const auto& hook : hooks) RETURN_IF_ERROR(CallHook(method, *hook, call));
  return absl::OkStatus();
}

}  // namespace muster
