// The memory of a client's push_pulls, kept from step to step so that none of it is allocated again. For one step at a
// time. Used by the training thread.
#pragma once

#include <vector>

#include "muster/store/calls/store_call.h"
#include "muster/store/client/wire_staging.h"
#include "muster/store/messages/messages.h"

namespace muster {

struct PushMemory {
  WireStaging wire;
  std::vector<StoreCall> calls;  // one per ps
  std::vector<StoreCall> ends;   // sent once `calls` are answered
  PushPullRequest message;
  std::vector<double> squares;  // of gradients; with `scales`, the factors: gradient_policy.h
  std::vector<double> scales;
};

}  // namespace muster
