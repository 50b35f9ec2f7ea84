// An answer that a gate holds back until others have come as far. Plain values.
#pragma once

#include <functional>
#include <string>

#include "absl/time/time.h"
#include "muster/store/messages/messages.h"
#include "muster/transport/listener.h"

namespace muster {

// What a push wants to pull.
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
  ConnectionId connection{};  // when it breaks, nobody waits for the answer any more, and it will be requested again
  absl::Time since;
  HeldPull pull;
  Responder responder;

  int client() const { return static_cast<int>(pull.stamp.client); }
};

// Sends the requested values, as they are now.
using AnswerPush = std::function<void(const HeldPull& pull, const PushPullReply& reply, Responder responder)>;

// For the status page: what a client waits for and since when; `what` is empty if it doesn't wait.
struct WaitingFor {
  std::string what;
  absl::Time since;
};

}  // namespace muster
