// What a client's push_pulls are made of, kept from one step to the next so that none of it is allocated again. For one
// step at a time. Used by the training thread.
#pragma once

#include <memory>
#include <vector>

#include "muster/store/client/store_call.h"
#include "muster/store/client/wire_staging.h"
#include "muster/store/messages/messages.h"
#include "muster/store/work/work_tally.h"

namespace muster {

struct PushMemory {
  WireStaging wire;
  std::vector<StoreCall> calls;  // one a ps
  std::vector<StoreCall> ends;   // what is sent when they are answered
  PushPullRequest message;
  Request request;              // as a channel takes it
  std::vector<double> squares;  // of gradients, and what they are scaled by: gradient_policy.h
  std::vector<double> scales;
  std::shared_ptr<WorkTally> work;  // null: nothing is shared out

  WorkRange Work() const { return work != nullptr ? work->Seal() : WorkRange(); }
};

}  // namespace muster
