// Asks what lives on an event loop a question from another thread; the question runs on the loop.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/transport/event_loop.h"

namespace muster {

// Blocks. Unavailable: the loop didn't run it within `patience`; `question` may still run later.
absl::StatusOr<std::string> AskLoop(EventLoop& loop, std::function<std::string()> question, absl::Duration patience);

}  // namespace muster
