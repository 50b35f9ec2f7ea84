// What the commit pipeline (commit_pipeline.h) does between a minibatch and the ps. Every algorithm with a ps is one
// setting of these fields: docs/algorithms.md describes the pipeline, algorithm_table.h lists the settings by name. A
// plain value.
#pragma once

#include <cstdint>
#include <optional>

#include "muster/optim/optimizer_spec.h"
#include "muster/optim/staleness_scale.h"
#include "muster/store/model/model.h"

namespace muster {

// What a worker sends to the ps at the end of a window. θ are its own values, θ₀ those it pulled last.
enum class CommitKind : uint8_t {
  kGradient,        // the sum of the window's gradients; the ps apply a rule that descends
  kDelta,           // θ − θ₀; the ps add it (the rule add)
  kPseudoGradient,  // θ₀ − θ, a gradient for a rule that descends (DiLoCo's outer gradient)
  kExchange,        // θ: the ps and the worker move towards each other by α (θ − centre), one worker at a time
  kSharedExchange,  // the same for all workers at once; needs the synchronous gate and the rule add
};

struct CommitSpec {
  CommitKind kind = CommitKind::kGradient;
  // Minibatches per commit. A run's last commit may have fewer.
  uint32_t window = 1;
  // Minibatches between two fetches of the global values. 0: fetches with each commit. Only for kGradient and kDelta
  // without a gate.
  uint32_t fetch_window = 0;
  // The rule by which the worker moves its own values after each minibatch, with slots of its own. Without one, all
  // minibatches of a window are computed from the same values.
  std::optional<OptimizerSpec> worker_rule;
  bool mean = false;  // the commit is divided by the number of its minibatches
  double scale = 1;   // and multiplied by this

  StalenessScale staleness_scale = StalenessScale::kNone;
  double compensation = 0;  // c of DelayCompensation; 0: none. Only for kGradient without worker_rule
  // γ of ADAG's per-weight scale (gradient_change.h); 0: none. Only for kDelta.
  double adaptive = 0;

  double alpha = 0;     // for kExchange and kSharedExchange: 0 < α ≤ 1
  double momentum = 0;  // for kExchange: δ of EAMSGD's Nesterov momentum, with SGD as worker rule; 0: none

  GateSpec gate = {};
  std::optional<uint32_t> staleness_bound;  // how many commits a worker may be ahead of the slowest

  // Commits are admitted in the workers' order, one per worker in turn, which makes a run repeatable bit for bit. All
  // workers of the cluster must take part from the beginning to the end.
  bool deterministic = false;
};

}  // namespace muster
