// An answer that a gate keeps back until others have come as far. Plain values.
#pragma once

#include <functional>
#include <string>

#include "absl/time/time.h"
#include "muster/store/messages.h"
#include "muster/transport/listener.h"

namespace muster {

struct HeldAnswer {
  ConnectionId connection{};  // breaks: the answer isn't waited for any more, and is asked for again
  absl::Time since;
  PushPullRequest request;
  Responder responder;

  int client() const { return static_cast<int>(request.stamp.client); }
};

// Sends what `request` asks to pull, as it is now.
using AnswerPush = std::function<void(const PushPullRequest& request, PushPullReply reply, Responder responder)>;

// For the status page: whom a client waits for and since when; `what` is empty if it doesn't wait.
struct WaitingFor {
  std::string what;
  absl::Time since;
};

}  // namespace muster
