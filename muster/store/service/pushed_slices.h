// One pass over the slices of a ps, by which a push is applied and what it pulls is copied out: the gradients, the
// copies that some come with, and the answer lie behind each other in the order of the slices. A view of a request, its
// bulk and the arena that it is for; used on the store's loop.
#pragma once

#include <cstddef>
#include <cstdint>

#include "muster/base/bytes.h"
#include "muster/optim/adaptive_delta.h"
#include "muster/optim/delay_compensation.h"
#include "muster/store/arena/arena.h"
#include "muster/store/messages/messages.h"
#include "muster/store/service/push_part.h"

namespace muster {

class PushedSlices {
 public:
  // All must outlive it. The request has been checked, and is of the arena's generation. `pulled`: where the answer's
  // values go, PushPart::PullBytes() long; empty: nowhere.
  PushedSlices(Arena& arena, const PushPullRequest& message, ByteSpan bulk, MutableByteSpan pulled);

  // Once. Learning rates are those of `global_step`; `staleness` is what the push is scaled by, if it wants to be.
  void Apply(int64_t global_step, uint64_t staleness);

 private:
  void Push(size_t slice, int64_t global_step, MutableByteSpan into);
  const GradientChange* PulledCopyChange() const;

  Arena& arena_;
  const PushPullRequest& message_;
  const PushPart part_;
  const DelayCompensation compensation_;
  const AdaptiveDelta adaptive_;
  // What the slices to come have of each.
  ByteSpan gradients_;
  ByteSpan pulled_copies_;
  MutableByteSpan pulled_;
  double scale_ = 1;      // by the staleness
  size_t next_push_ = 0;  // the first of the request's that hasn't come
};

}  // namespace muster
