// The question of a worker of an ordered model for its turn (docs/store/gates.md).
#pragma once

#include <cstdint>

#include "muster/store/messages/stamp.h"
#include "muster/transport/messages/fields.h"

namespace muster {

// Answered when the sender is the next to push.
struct AwaitTurnRequest {
  Stamp stamp;
  uint64_t generation = 0;  // of the values that it has; another is answered with Aborted
  uint64_t clock = 0;       // of its pushes that some ps has, the last
  uint64_t local_step = 0;  // the round, as ps 0 answered it last
  bool leaves = false;      // it pushes no more: answered when nobody does

  using Fields = FieldList<Field<1, &AwaitTurnRequest::stamp>, Field<2, &AwaitTurnRequest::generation>,
                           Field<3, &AwaitTurnRequest::clock>, Field<4, &AwaitTurnRequest::local_step>,
                           Field<5, &AwaitTurnRequest::leaves>>;
};

struct AwaitTurnReply {
  uint64_t clock = 0;  // of the sender's pushes that this ps has, the last
  using Fields = FieldList<Field<1, &AwaitTurnReply::clock>>;
};

}  // namespace muster
