// Changes a gradient before an update rule sees it, according to the present value: the variable has moved since the
// gradient was computed. The ps calls it block by block, under the stripe's lock. Implementations are stateless and
// thread-safe.
#pragma once

#include "muster/base/bytes.h"
#include "muster/base/dtype.h"

namespace muster {

class GradientChange {
 public:
  virtual ~GradientChange() = default;

  // Some elements of one variable. All spans are equally long, of `dtype`, at any address.
  struct Block {
    DType dtype{};
    size_t offset = 0;  // bytes into the slice
    ByteSpan value;     // now
    ByteSpan pulled;    // when the gradient was computed; empty: not sent along
    ByteSpan gradient;  // as it was pushed
    double scale = 1;   // factor to apply to the gradient first (UpdateRule::Step::gradient_scale)
  };
  // `into` ← the gradient for the rule, which then uses a scale of 1. Floating-point types only.
  virtual void Change(const Block& block, MutableByteSpan into) const = 0;
};

}  // namespace muster
