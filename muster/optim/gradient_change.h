// What becomes of a gradient before an update rule sees it, by the value as it is now: the variable has moved since the
// gradient was computed. The ps calls it block by block, under the stripe's lock, with the value as it is now.
// Implementations are stateless and thread-safe.
#pragma once

#include "muster/base/bytes.h"
#include "muster/base/dtype.h"

namespace muster {

class GradientChange {
 public:
  virtual ~GradientChange() = default;

  // Of some elements of one variable, all spans equally long and of `dtype`, at any address.
  struct Block {
    DType dtype{};
    size_t offset = 0;  // bytes into the slice
    ByteSpan value;     // now
    ByteSpan pulled;    // when the gradient was computed; empty: it didn't come along
    ByteSpan gradient;  // as it was pushed
    double scale = 1;   // what it is to be multiplied by first (UpdateRule::Step::gradient_scale)
  };
  // `into` ← the gradient that the rule is to see, its scale being 1 then. Floating-point types only.
  virtual void Change(const Block& block, MutableByteSpan into) const = 0;
};

}  // namespace muster
