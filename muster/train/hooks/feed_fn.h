// Values for each step from a function of the program (TensorFlow's FeedFnHook); the step reads them with Session::Fed.
#pragma once

#include <any>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "muster/train/hook/session_hook.h"

namespace muster {

// Called before each run. A name that another hook feeds too is an error of the run (AlreadyExists).
using FeedFunction = std::function<std::map<std::string, std::any>()>;
std::shared_ptr<SessionHook> FeedFn(FeedFunction feed_fn);

}  // namespace muster
