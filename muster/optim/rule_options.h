// The rules as a training program names them: `Adam({.learning_rate = 0.001})`. Defaults are torch::optim's.
#pragma once

#include "muster/optim/update_rule.h"

namespace muster {

struct SgdOptions {
  double learning_rate = 0.01;
};
inline RuleSpec Sgd(const SgdOptions& options = {}) {
  return {.kind = RuleKind::kSgd, .learning_rate = options.learning_rate};
}

struct MomentumOptions {
  double learning_rate = 0.01;
  double momentum = 0.9;
  bool nesterov = false;
};
inline RuleSpec Momentum(const MomentumOptions& options = {}) {
  return {.kind = RuleKind::kMomentum,
          .learning_rate = options.learning_rate,
          .momentum = options.momentum,
          .nesterov = options.nesterov};
}

struct AdamOptions {
  double learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
};
inline RuleSpec Adam(const AdamOptions& options = {}) {
  return {.kind = RuleKind::kAdam,
          .learning_rate = options.learning_rate,
          .beta1 = options.beta1,
          .beta2 = options.beta2,
          .epsilon = options.epsilon};
}

}  // namespace muster
