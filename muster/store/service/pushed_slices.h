// One pass over the slices of a ps that applies a push and copies out what it pulls. The gradients, the pulled copies
// that some come with, and the answer each lie one after another in the order of the slices. A view of a request, its
// bulk and its arena; used on the store's loop.
#pragma once

#include <cstddef>
#include <cstdint>

#include "muster/base/bytes.h"
#include "muster/optim/gradient_change.h"
#include "muster/store/arena/arena.h"
#include "muster/store/messages/messages.h"
#include "muster/store/service/push_part.h"

namespace muster {

class PushedSlices {
 public:
  // All must outlive it. The request must have been checked, and be of the arena's generation. `pulled`: where the
  // answer's values go, PushPart::PullBytes() long; empty: nowhere.
  PushedSlices(Arena& arena, const PushPullRequest& message, ByteSpan bulk, MutableByteSpan pulled);

  // Call it once. Uses the learning rates at `global_step`, and scales the push by `staleness` if the push asks for it.
  void Apply(int64_t global_step, uint64_t staleness);

 private:
  void Push(size_t slice, int64_t global_step, MutableByteSpan into);
  const GradientChange* PulledCopyChange() const;

  Arena& arena_;
  const PushPullRequest& message_;
  const PushPart part_;
  const DelayCompensation compensation_;
  const AdaptiveDelta adaptive_;
  // What is left for the slices to come.
  ByteSpan gradients_;
  ByteSpan pulled_copies_;
  MutableByteSpan pulled_;
  double scale_ = 1;      // by the staleness
  size_t next_push_ = 0;  // the first of the request's slices still to come
};

}  // namespace muster
