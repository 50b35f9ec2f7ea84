// The rules as training programs write them: `Adam({.learning_rate = 0.001})`. Defaults are torch::optim's; Ftrl's are
// TensorFlow's. `weight_decay` is torch's (λ p added to the gradient; AdamW's is decoupled).
#pragma once

#include "muster/optim/rule_spec.h"

namespace muster {

struct SgdOptions {
  double learning_rate = 0.01;
  double weight_decay = 0;
  ClipSpec clip = {};
  ScheduleSpec schedule = {};
};
inline RuleSpec Sgd(const SgdOptions& options = {}) {
  return {.kind = RuleKind::kSgd,
          .learning_rate = options.learning_rate,
          .weight_decay = options.weight_decay,
          .clip = options.clip,
          .schedule = options.schedule};
}

struct MomentumOptions {
  double learning_rate = 0.01;
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0;
  ClipSpec clip = {};
  ScheduleSpec schedule = {};
};
inline RuleSpec Momentum(const MomentumOptions& options = {}) {
  return {.kind = RuleKind::kMomentum,
          .learning_rate = options.learning_rate,
          .momentum = options.momentum,
          .nesterov = options.nesterov,
          .weight_decay = options.weight_decay,
          .clip = options.clip,
          .schedule = options.schedule};
}

struct AdamOptions {
  double learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  ClipSpec clip = {};
  ScheduleSpec schedule = {};
};
inline RuleSpec Adam(const AdamOptions& options = {}) {
  return {.kind = RuleKind::kAdam,
          .learning_rate = options.learning_rate,
          .beta1 = options.beta1,
          .beta2 = options.beta2,
          .epsilon = options.epsilon,
          .weight_decay = options.weight_decay,
          .clip = options.clip,
          .schedule = options.schedule};
}

struct AdamWOptions {
  double learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  ClipSpec clip = {};
  ScheduleSpec schedule = {};
};
inline RuleSpec AdamW(const AdamWOptions& options = {}) {
  return {.kind = RuleKind::kAdamW,
          .learning_rate = options.learning_rate,
          .beta1 = options.beta1,
          .beta2 = options.beta2,
          .epsilon = options.epsilon,
          .weight_decay = options.weight_decay,
          .clip = options.clip,
          .schedule = options.schedule};
}

struct AdagradOptions {
  double learning_rate = 0.01;
  double learning_rate_decay = 0;
  double weight_decay = 0;
  double initial_accumulator = 0;
  double epsilon = 1e-10;
  ClipSpec clip = {};
  ScheduleSpec schedule = {};
};
inline RuleSpec Adagrad(const AdagradOptions& options = {}) {
  return {.kind = RuleKind::kAdagrad,
          .learning_rate = options.learning_rate,
          .epsilon = options.epsilon,
          .weight_decay = options.weight_decay,
          .initial_accumulator = options.initial_accumulator,
          .learning_rate_decay = options.learning_rate_decay,
          .clip = options.clip,
          .schedule = options.schedule};
}

struct RmsPropOptions {
  double learning_rate = 0.01;
  double rho = 0.99;  // torch's alpha
  double epsilon = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;
  ClipSpec clip = {};
  ScheduleSpec schedule = {};
};
inline RuleSpec RmsProp(const RmsPropOptions& options = {}) {
  return {.kind = RuleKind::kRmsProp,
          .learning_rate = options.learning_rate,
          .momentum = options.momentum,
          .epsilon = options.epsilon,
          .weight_decay = options.weight_decay,
          .rho = options.rho,
          .centered = options.centered,
          .clip = options.clip,
          .schedule = options.schedule};
}

struct AdadeltaOptions {
  double learning_rate = 1;
  double rho = 0.9;
  double epsilon = 1e-6;
  double weight_decay = 0;
  ClipSpec clip = {};
  ScheduleSpec schedule = {};
};
inline RuleSpec Adadelta(const AdadeltaOptions& options = {}) {
  return {.kind = RuleKind::kAdadelta,
          .learning_rate = options.learning_rate,
          .epsilon = options.epsilon,
          .weight_decay = options.weight_decay,
          .rho = options.rho,
          .clip = options.clip,
          .schedule = options.schedule};
}

struct FtrlOptions {
  double learning_rate = 0.001;
  double learning_rate_power = -0.5;
  double initial_accumulator = 0.1;
  double l1 = 0;
  double l2 = 0;
  double weight_decay = 0;
  ClipSpec clip = {};
  ScheduleSpec schedule = {};
};
inline RuleSpec Ftrl(const FtrlOptions& options = {}) {
  return {.kind = RuleKind::kFtrl,
          .learning_rate = options.learning_rate,
          .weight_decay = options.weight_decay,
          .initial_accumulator = options.initial_accumulator,
          .learning_rate_power = options.learning_rate_power,
          .l1 = options.l1,
          .l2 = options.l2,
          .clip = options.clip,
          .schedule = options.schedule};
}

// Adds the pushed values: for programs that push their own deltas.
struct PlainAddOptions {
  ClipSpec clip = {};
};
inline RuleSpec PlainAdd(const PlainAddOptions& options = {}) { return {.kind = RuleKind::kAdd, .clip = options.clip}; }

}  // namespace muster
