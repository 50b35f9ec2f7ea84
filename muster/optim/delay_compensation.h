// Delay compensation (Zheng et al., "Asynchronous Stochastic Gradient Descent with Delay Compensation", ICML 2017,
// arXiv 1609.08326, equation 10). It corrects a gradient computed at w_pulled for w_now, using the diagonal of the
// gradient's outer product in place of the Hessian: g ← g + λ g² (w_now − w_pulled). With the rule sgd this is
// DC-ASGD-c; any other rule may follow. λ 0 changes nothing.
#pragma once

#include "muster/optim/gradient_change.h"

namespace muster {

class DelayCompensation final : public GradientChange {
 public:
  // `lambda` ≥ 0, finite. The paper uses 0.04 and 2, depending on the task.
  explicit DelayCompensation(double lambda) : lambda_(lambda) {}

  void Change(const Block& block, MutableByteSpan into) const override;

 private:
  const double lambda_;
};

}  // namespace muster
