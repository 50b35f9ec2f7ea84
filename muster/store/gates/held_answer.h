// An answer that a gate keeps back until others have come as far. Plain values.
#pragma once

#include <functional>
#include <string>

#include "absl/time/time.h"
#include "muster/store/messages/messages.h"
#include "muster/transport/listener.h"

namespace muster {

// What a push asks to pull.
struct HeldPull {
  Stamp stamp;
  PullWhat what = PullWhat::kNothing;
  WirePrecision as = WirePrecision::kFull;
  uint64_t clock = 0;
};

inline HeldPull PullOf(const PushPullRequest& request) {
  return {request.stamp, request.pull, request.pulled_as, request.clock};
}

struct HeldAnswer {
  ConnectionId connection{};  // breaks: the answer isn't waited for any more, and is asked for again
  absl::Time since;
  HeldPull pull;
  Responder responder;

  int client() const { return static_cast<int>(pull.stamp.client); }
};

// Sends what is asked for, as it is now.
using AnswerPush = std::function<void(const HeldPull& pull, const PushPullReply& reply, Responder responder)>;

// For the status page: whom a client waits for and since when; `what` is empty if it doesn't wait.
struct WaitingFor {
  std::string what;
  absl::Time since;
};

}  // namespace muster
