// One part of an update that comes to a ps in parts (docs/store/overlap.md): which stripes it brings, what
// its answer holds, and whether it completes the update. A request for a whole update is the part that brings and pulls
// everything. A view of a request and of its arena; used on the store's loop.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "muster/store/arena/arena.h"
#include "muster/store/messages/messages.h"
#include "muster/store/model/stripe_range.h"

namespace muster {

class PushPart {
 public:
  // Both must outlive it; Check must have passed.
  PushPart(Arena& arena, const PushPullRequest& message) : arena_(arena), message_(message) {}

  // InvalidArgument: a senseless part, or one that doesn't fit the model. The pushed slices must exist.
  [[nodiscard]] static absl::Status Check(const Arena& arena, const PushPullRequest& message);

  // For the pushed-th slice of the request: its stripes, and their bytes on the wire.
  StripeRange range(size_t pushed) const;
  size_t bytes(size_t pushed) const;

  // Bytes of slice `slice` in the answer. If the request pushes it, those of the pushed stripes (`pushed`: its place in
  // the request, or negative). If no part of the update pushes it, all, with the last part. 0: none.
  size_t PullBytes(size_t slice, int64_t pushed) const;
  size_t PullBytes() const;  // of all slices

  // Whether the update is complete with the stripes of this part, or was before.
  bool CompletesUpdate() const;
  // Whether the update changes trainable variables of this ps, by this part or by earlier ones.
  bool UpdatesSomething() const;

 private:
  Arena& arena_;
  const PushPullRequest& message_;
};

}  // namespace muster
