// ADAG, asynchronous distributed adaptive gradients (Hermans, "On Scalable Deep Learning and Parallelizing Gradient
// Descent", master's thesis, Maastricht University 2017, the chapter of that name). It reduces what a worker adds to
// each weight by how far that weight has moved since the worker pulled it: Δ ← Δ / (γ⁻¹ (w_now − w_pulled)² + 1). For
// the rule add. A large γ changes nothing; where a weight hasn't moved, no γ does.
#pragma once

#include "muster/optim/gradient_change.h"

namespace muster {

class AdaptiveDelta final : public GradientChange {
 public:
  // `gamma` > 0, finite.
  explicit AdaptiveDelta(double gamma) : gamma_(gamma) {}

  void Change(const Block& block, MutableByteSpan into) const override;

 private:
  const double gamma_;
};

}  // namespace muster
