// Builds the call that a rank is about to make, which the others compare with theirs, after checking it. The checks
// come before anything is touched or sent, and are the same for every kind of Collective. Errors: InvalidArgument. Pure
// functions.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "muster/base/bytes.h"
#include "muster/base/dtype.h"
#include "muster/collective/collective.h"
#include "muster/collective/collective_call.h"

namespace muster {

// Refuses a type that isn't floating-point, a segment that ends within an element, an `out` of another size than `in`.
absl::StatusOr<CollectiveCall> CallOfAllReduce(const Segments& in, const MutableSegments& out, DType dtype,
                                               Reduction reduction);
// Refuses the same; `out` must be as large as the rank's share.
absl::StatusOr<CollectiveCall> CallOfReduceScatter(const Segments& in, const MutableSegments& out, DType dtype,
                                                   Reduction reduction, int rank, int size);
// Refuses elements of 0 bytes, an `out` that ends within an element, an `in` that isn't as large as the rank's share.
absl::StatusOr<CollectiveCall> CallOfAllGather(const Segments& in, const MutableSegments& out, size_t element_bytes,
                                               int rank, int size);
// Refuses a root that doesn't exist.
absl::StatusOr<CollectiveCall> CallOfBroadcast(const MutableSegments& data, int root, int size);

}  // namespace muster
