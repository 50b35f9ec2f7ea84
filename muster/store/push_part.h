// An update that comes to a ps in parts, as the ps sees one of them (docs/store/overlap.md): which stripes
// it brings, what its answer holds, and whether the update is whole with it. A request that is no part of anything is
// the part that brings and pulls all. A view of a request and of the arena that it is for; used on the store's loop.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "muster/store/arena.h"
#include "muster/store/messages.h"
#include "muster/store/stripe_range.h"

namespace muster {

class PushPart {
 public:
  // Both must outlive it. Check has been passed.
  PushPart(Arena& arena, const PushPullRequest& message) : arena_(arena), message_(message) {}

  // InvalidArgument: a part that can't be meant, or can't be of that model. What is pushed names slices that exist.
  [[nodiscard]] static absl::Status Check(const Arena& arena, const PushPullRequest& message);

  // Of the pushed-th slice that the request names: which stripes, and how many bytes they have as they travel.
  StripeRange range(size_t pushed) const;
  size_t bytes(size_t pushed) const;

  // Bytes of slice `slice` in the answer: of what is pushed its stripes (`pushed` is which it is of the request's, or
  // negative); of what no part of the update pushes, all, with the last part; 0: none.
  size_t PullBytes(size_t slice, int64_t pushed) const;
  size_t PullBytes() const;  // of all slices

  // With the stripes of this part applied: the update is, or was before.
  bool CompletesUpdate() const;
  // The update changes trainable variables of this ps, with this part or with earlier ones.
  bool UpdatesSomething() const;

 private:
  Arena& arena_;
  const PushPullRequest& message_;
};

}  // namespace muster
