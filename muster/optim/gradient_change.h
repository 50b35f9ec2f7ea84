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

// Delay compensation (Zheng et al., "Asynchronous Stochastic Gradient Descent with Delay Compensation", ICML 2017,
// arXiv 1609.08326, equation 10). It corrects a gradient computed at w_pulled for w_now, using the diagonal of the
// gradient's outer product in place of the Hessian: g ← g + c g² (w_now − w_pulled). With the rule sgd this is
// DC-ASGD-c; any other rule may follow. c 0 changes nothing.
class DelayCompensation final : public GradientChange {
 public:
  // `compensation` (c) ≥ 0, finite. The paper uses 0.04 and 2, depending on the task.
  explicit DelayCompensation(double compensation) : compensation_(compensation) {}
  void Change(const Block& block, MutableByteSpan into) const override;

 private:
  const double compensation_;
};

// ADAG, asynchronous distributed adaptive gradients (Hermans, "On Scalable Deep Learning and Parallelizing Gradient
// Descent", master's thesis, Maastricht University 2017, the chapter of that name). It reduces what a worker adds to
// each weight by how far that weight has moved since the worker pulled it: Δ ← Δ / (γ⁻¹ (w_now − w_pulled)² + 1). For
// the rule add. A large γ changes nothing; where a weight hasn't moved, no γ does.
class AdaptiveDelta final : public GradientChange {
 public:
  // `gamma` > 0, finite.
  explicit AdaptiveDelta(double gamma) : gamma_(gamma) {}
  void Change(const Block& block, MutableByteSpan into) const override;

 private:
  const double gamma_;
};

}  // namespace muster
