// The messages about tables of rows (docs/store/rows.md); messages.h encodes them. Plain values.
#pragma once

#include <cstdint>

#include "muster/store/stamp.h"

namespace muster {

// Of one table of rows, the ps's slice `slice`; kGatherRows and kPushRows. Bulk: int64 numbers of rows within the slice
// (pushed: ascending, each once; gathered: in any order), then, pushed, the gradients [rows, width] of the type of
// slots. The reply's bulk: the gathered rows.
struct RowsRequest {
  Stamp stamp;
  uint32_t slice = 0;
  uint64_t generation = 0;  // of the values; another is answered with Aborted
  uint64_t rows = 0;
  // The rest is for pushes.
  int64_t global_step = 0;  // that the sender knows of: as in PushPullRequest
  double scale = 1;         // what the gradients are multiplied by
  bool last = false;        // of the requests of one push under one number: it alone may have rows of the first stripe
};

}  // namespace muster
