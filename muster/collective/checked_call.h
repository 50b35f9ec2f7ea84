// The call that a rank is about to make, for the others to compare with theirs, once it is clear that it can be meant:
// said before anything is touched or sent, the same for every kind of Collective. Errors: InvalidArgument. Pure
// functions.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "muster/base/bytes.h"
#include "muster/base/dtype.h"
#include "muster/collective/collective.h"
#include "muster/collective/collective_call.h"

namespace muster {

// For a type that isn't floating-point, a segment that ends within an element, an `out` of another size than `in`.
absl::StatusOr<CollectiveCall> CallOfAllReduce(const Segments& in, const MutableSegments& out, DType dtype,
                                               Reduction reduction);
// Likewise; `out` must be as large as the rank's share.
absl::StatusOr<CollectiveCall> CallOfReduceScatter(const Segments& in, const MutableSegments& out, DType dtype,
                                                   Reduction reduction, int rank, int size);
// For elements of no bytes, an `out` that ends within one, an `in` that isn't as large as the rank's share.
absl::StatusOr<CollectiveCall> CallOfAllGather(const Segments& in, const MutableSegments& out, size_t element_bytes,
                                               int rank, int size);
// For a root that there isn't.
absl::StatusOr<CollectiveCall> CallOfBroadcast(const MutableSegments& data, int root, int size);

}  // namespace muster
