// A question from another thread to what lives on an event loop: asked and answered on the loop.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/transport/event_loop.h"

namespace muster {

// Blocks. Unavailable: the loop hasn't come to it within `patience`; `question` may then still be asked, later.
absl::StatusOr<std::string> AskLoop(EventLoop& loop, std::function<std::string()> question, absl::Duration patience);

}  // namespace muster
