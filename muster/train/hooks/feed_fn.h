// Feeds each step with values from a function of the program (TensorFlow's FeedFnHook); the step reads them with
// Session::Fed.
#pragma once

#include <any>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "muster/train/hook_api/session_hook.h"

namespace muster {

// Called before each run. If another hook feeds the same name, the run fails (AlreadyExists).
using FeedFunction = std::function<std::map<std::string, std::any>()>;
std::shared_ptr<SessionHook> FeedFn(FeedFunction feed_fn);

}  // namespace muster
