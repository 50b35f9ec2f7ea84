// The messages about tables of rows (docs/store/rows.md). Plain values.
#pragma once

#include <cstdint>

#include "muster/store/messages/stamp.h"
#include "muster/transport/messages/fields.h"

namespace muster {

// For one table of rows, the ps's slice `slice`; kGatherRows and kPushRows. Bulk: int64 row numbers within the slice
// (pushed: ascending, each once; gathered: in any order), then, if pushed, the gradients [rows, width] in the slots'
// type. The reply's bulk: the gathered rows.
struct RowsRequest {
  Stamp stamp;
  uint32_t slice = 0;
  uint64_t generation = 0;  // of the values; another one is answered with Aborted
  uint64_t rows = 0;
  // The rest is for pushes.
  int64_t global_step = 0;  // that the sender knows of: as in PushPullRequest
  double scale = 1;         // what the gradients are multiplied by
  bool last = false;        // of the requests of one push under one number: it alone may have rows of the first stripe

  using Fields =
      FieldList<Field<1, &RowsRequest::stamp>, Field<2, &RowsRequest::slice>, Field<3, &RowsRequest::generation>,
                Field<4, &RowsRequest::rows>, Field<5, &RowsRequest::global_step>, Field<6, &RowsRequest::scale>,
                Field<7, &RowsRequest::last>>;
};

}  // namespace muster
