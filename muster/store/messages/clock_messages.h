// The question for a ps's clock, by which the traces of tasks on several hosts are put on one (docs/observe.md).
#pragma once

#include <cstdint>

#include "muster/transport/messages/fields.h"

namespace muster {

struct ClockRequest {
  using Fields = FieldList<>;
};

struct ClockReply {
  int64_t nanos = 0;  // of the clock of the ps's trace, as it answers
  using Fields = FieldList<Field<1, &ClockReply::nanos>>;
};

}  // namespace muster
