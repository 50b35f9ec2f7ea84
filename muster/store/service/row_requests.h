// A ps's part in look-ups and updates of single rows: what of a RowsRequest is checked before its bulk is read, and how
// it is carried out on the arena. The service (push_requests.cc) knows who asks and when; this knows the bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "muster/base/bytes.h"
#include "muster/store/arena/arena.h"
#include "muster/store/messages/messages.h"

namespace muster {

// For the status page.
struct RowCounts {
  uint64_t gathered = 0;
  uint64_t pushed = 0;
};

// InvalidArgument: no such slice, or not one of a table; a bulk of the wrong length for that many rows; a reply of more
// than 1 GiB.
[[nodiscard]] absl::Status CheckRowsRequest(const StoreModel& model, StoreMethod method, const RowsRequest& request,
                                            size_t bulk_bytes);

// Bytes of the rows that a look-up requests.
size_t GatheredBytes(const StoreModel& model, const RowsRequest& request);

// The requests must have passed CheckRowsRequest and be of the arena's generation; `bulk` must be aligned to 8 bytes.
// InvalidArgument, with nothing changed: a row that the slice doesn't have, named with its size; pushed rows that
// aren't in ascending order, or that only the last request of a push may bring.
[[nodiscard]] absl::Status GatherRows(Arena& arena, const RowsRequest& request, ByteSpan bulk, MutableByteSpan into);
[[nodiscard]] absl::Status PushRows(Arena& arena, const RowsRequest& request, double learning_rate, ByteSpan bulk);

}  // namespace muster
