// The messages about tables of rows (docs/store/rows.md); messages.h encodes them. Plain values.
#pragma once

#include <cstdint>

#include "muster/store/messages/stamp.h"

namespace muster {

// For one table of rows, the ps's slice `slice`; kGatherRows and kPushRows. Bulk: int64 row numbers within the slice
// (pushed: ascending, each once; gathered: in any order), then, if pushed, the gradients [rows, width] in the slots'
// type. The reply's bulk: the gathered rows.
struct RowsRequest {
  Stamp stamp;
  uint32_t slice = 0;
  uint64_t generation = 0;  // of the values; another one is answered with Aborted
  uint64_t rows = 0;
  // The other fields are for pushes.
  int64_t global_step = 0;  // that the sender knows of, as in PushPullRequest
  double scale = 1;         // the gradients' factor
  bool last = false;        // the last request of a push under one number: only it may have rows of the first stripe
};

}  // namespace muster
